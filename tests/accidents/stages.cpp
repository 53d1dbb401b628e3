#include "tests/accidents/stages.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <weft/weft.hpp>

#include "tests/accidents/throws.hpp"

namespace {

constexpr std::uint64_t kStep = 3;

void say(const char* word) {
  fmt::print("{} {}\n", word, ::getpid());
  std::fflush(stdout);
}

void say_staged() { say("staged"); }

/// Runs steps in which each worker waits for all other workers.
class Steps {
 public:
  explicit Steps(weft::TrainContext& ctx)
      : ctx_(ctx), elements_(static_cast<std::size_t>(ctx.num_devices()) * 4, 1.0F) {}

  void step() {
    const weft::Tensor x = weft::to_device(elements_, {std::ssize(elements_)});
    weft::mark_sharding(x, *ctx_.mesh(), {{"data"}});
    sum_.assign(sum_ + weft::sum(x * x));
    weft::sync();
  }
  const weft::Parameter& sum() const { return sum_; }

 private:
  weft::TrainContext& ctx_;
  std::vector<float> elements_;
  weft::Parameter sum_ = weft::make_parameter("sum", std::vector<float>{0}, {1});
};

/// The objects of the loop that an accident or an odd habit uses.
struct Stage {
  weft::TrainContext& ctx;
  const weft::Config& config;
  Steps steps;
  int rank = ctx.world_rank();
  bool is_victim = rank == 1 || ctx.world_size() == 1;
  bool has_file = ::access(file().c_str(), F_OK) == 0;  ///< the file exists when the loop begins

  std::string file() const { return config["file"]; }
};

void lock_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (::flock(file, LOCK_EX) != 0) throw std::runtime_error("flock");
}

/// Returns a mutex in a file that all workers map.
pthread_mutex_t* shared_mutex(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (::ftruncate(file, sizeof(pthread_mutex_t)) != 0) throw std::runtime_error("ftruncate");
  void* const place =
      ::mmap(nullptr, sizeof(pthread_mutex_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return static_cast<pthread_mutex_t*>(place);
}

void make_mutex(pthread_mutex_t* mutex, int robustness) {
  pthread_mutexattr_t attributes;
  ::pthread_mutexattr_init(&attributes);
  ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&attributes, robustness);
  ::pthread_mutex_init(mutex, &attributes);
}

[[noreturn]] void spin() {
  say_staged();
  for (volatile bool forever = true;;) forever = !forever;
}

void wait_for_disk() { stay_here(); }

/// A dataset of 24 items. Worker 1 needs item 3 for its first batch; a read of this item calls
/// on_item_3(), which can stage an accident.
class Items : public weft::Dataset {
 public:
  explicit Items(std::function<void()> on_item_3) : on_item_3_(std::move(on_item_3)) {}
  std::string name() const override { return "stuck"; }
  std::int64_t size() const override { return 24; }
  const std::vector<weft::Field>& fields() const override { return fields_; }

 private:
  void read_item(const weft::Item& item, weft::ItemMemory out) const override {
    if (on_item_3_ && item.index == 3) on_item_3_();
    std::ranges::fill(out[0], std::byte{});
  }

  std::vector<weft::Field> fields_{{.name = "x", .type = {weft::DType::f32, {1}}}};
  std::function<void()> on_item_3_;
};

void read_items(const Stage& stage, const std::function<void()>& on_item_3) {
  weft::DeviceLoader loader(std::make_shared<Items>(stage.is_victim ? on_item_3 : nullptr),
                            {.batch_size = 6});
  for (const weft::Batch& batch : loader) weft::sum(batch["x"]).item();
}

void crash_here(volatile int* place) { *place = 1; }

/// Waits for a child that never calls exec; the child is killed when this process ends.
void wait_for_child() {
  say_staged();
  const pid_t child = ::vfork();
  if (child != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) ::pause();
}

void lock_twice() {
  std::mutex mutex;
  mutex.lock();
  say_staged();
  mutex.lock();
}

void lock_what_a_thread_held() {
  std::mutex mutex;
  std::thread([&] { mutex.lock(); }).join();
  say_staged();
  mutex.lock();
}

/// Makes worker 1 die while it holds the shared mutex. After recovery worker 0 locks the mutex.
void take_from_the_dead(Stage& stage) {
  const std::uint64_t step = stage.ctx.step();
  if (stage.rank == 1 && step == kStep && ::access(stage.file().c_str(), F_OK) != 0) {
    pthread_mutex_t* const shared = shared_mutex(stage.file());
    make_mutex(shared, PTHREAD_MUTEX_STALLED);
    ::pthread_mutex_lock(shared);
    std::raise(SIGKILL);
  }
  if (stage.rank == 0 && stage.has_file && step == kStep + 1) {
    say_staged();
    ::pthread_mutex_lock(shared_mutex(stage.file()));
  }
}

/// Runs a chain of elementwise ops, which are fused into one loop.
void run_chain(int count) {
  weft::Tensor x = weft::full({1024}, 0.5);
  for (int i = 0; i < count; ++i) x = weft::tanh(x) * 1.0001 + 0.0001;
  weft::sum(x).item();
}

using Act = std::function<void(Stage&)>;

/// Returns the accidents that happen to the victim at step 3, by their mode.
const std::map<std::string, Act>& accidents() {
  static const std::map<std::string, Act> all{
      {"stop",
       [](Stage&) {
         say_staged();
         std::raise(SIGSTOP);
       }},
      {"spin", [](Stage&) { spin(); }},
      {"pause", [](Stage&) { stay_here(); }},
      {"read_alone",
       [](Stage& stage) {
         stage.steps.sum().to_vector();
         (stage.steps.sum() * 2.0).to_vector();
       }},
      {"save_alone",
       [](Stage& stage) {
         weft::CheckpointManager().save(std::vector{stage.steps.sum()}, {.force = true});
       }},
      {"segv", [](Stage&) { crash_here(nullptr); }},
      {"abort", [](Stage&) { std::abort(); }},
      {"uncaught", [](Stage&) { std::thread([] { throw std::runtime_error("boom"); }).join(); }},
      {"throw", [](Stage&) { throw_here(); }},
      {"throw_again", [](Stage&) { throw_again(); }},
      {"throw_in_thread", [](Stage&) { throw_in_thread(); }},
      {"throw_other", [](Stage&) { throw_other(); }},
      {"mistake", [](Stage&) { add_other_shapes(); }},
      {"exit", [](Stage&) { std::_Exit(3); }},
      {"kill", [](Stage&) { std::raise(SIGKILL); }},
      {"vfork", [](Stage&) { wait_for_child(); }},
      {"lock_twice", [](Stage&) { lock_twice(); }},
      {"mutex_of_a_thread", [](Stage&) { lock_what_a_thread_held(); }},
      {"report",
       [](Stage& stage) {
         say_staged();
         for (;;) stage.ctx.report({{"x", 1}});
       }},
  };
  return all;
}

/// Makes worker 1 hold the lock from step 3 on, and worker 0 try to lock it at step 4.
void hold_lock(Stage& stage, const std::function<void()>& lock) {
  const std::uint64_t step = stage.ctx.step();
  // Reads a value of all workers, because loops could otherwise be several steps apart.
  if (step == kStep + 1) stage.steps.sum().to_vector();
  if (stage.rank == 1 && step == kStep) lock();
  if (stage.rank == 1 && step == kStep + 1 &&
      stage.config["mode"].get<std::string>().ends_with("_held")) {
    stay_here();
  }
  if (stage.rank == 0 && step == kStep + 1) {
    say_staged();
    lock();
  }
}

/// Throws when all workers are here, so that no worker is told of another's exception before.
void throw_together(Stage& stage) {
  const auto file_of = [&](int rank) { return fmt::format("{}.{}", stage.file(), rank); };
  ::close(::open(file_of(stage.rank).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  for (int rank = 0; rank < stage.ctx.world_size(); ++rank) {
    while (::access(file_of(rank).c_str(), F_OK) != 0) ::sched_yield();
  }
  throw_here();
}

/// Returns accidents of all workers at step 3, or of the victim while the others run the same code.
const std::map<std::string, Act>& common_accidents() {
  static const std::map<std::string, Act> all{
      {"loader", [](Stage& stage) { read_items(stage, wait_for_disk); }},
      {"throw_item", [](Stage& stage) { read_items(stage, throw_here); }},
      {"throw_all", throw_together},
      {"large_array",
       [](Stage&) {
         weft::sum(weft::to_device(std::vector<float>(16 << 20), {16 << 20})).to_vector();
       }},
  };
  return all;
}

/// Returns what each worker does at each step, by the mode.
const std::map<std::string, Act>& habits() {
  static const auto pass_lock = [](Stage& stage) {
    hold_lock(stage, [&] { lock_file(stage.file()); });
  };
  static const auto pass_mutex = [](int robustness) {
    return [robustness](Stage& stage) {
      hold_lock(stage, [&] {
        pthread_mutex_t* const shared = shared_mutex(stage.file());
        if (stage.rank == 1) make_mutex(shared, robustness);
        ::pthread_mutex_lock(shared);
      });
    };
  };
  static const std::map<std::string, Act> all{
      {"flock", pass_lock},
      {"flock_held", pass_lock},
      {"mutex", pass_mutex(PTHREAD_MUTEX_STALLED)},
      {"mutex_held", pass_mutex(PTHREAD_MUTEX_STALLED)},
      {"robust_mutex", pass_mutex(PTHREAD_MUTEX_ROBUST)},
      {"mutex_of_the_dead", take_from_the_dead},
      {"fill_progress",
       [](Stage& stage) {
         stage.ctx.report({{"text", std::string(50'000, 'x')}});
       }},
      {"save_all",
       [](Stage& stage) {
         static const weft::Parameter large =
             weft::make_parameter("large", std::vector<float>(1 << 20), {1 << 20});
         weft::CheckpointManager().save(std::vector{large, stage.steps.sum()}, {.force = true});
       }},
      {"slow", [](Stage& stage) { ::poll(nullptr, 0, stage.is_victim ? 20 : 0); }},
      // The jobs of the following modes are healthy.
      {"plain", [](Stage&) {}},
      {"fsync",
       [](Stage& stage) {
         const std::string path = fmt::format("{}.{}", stage.file(), stage.rank);
         const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
         const std::string bytes(4 << 20, 'x');
         if (::write(file, bytes.data(), bytes.size()) < 0) throw std::runtime_error("write");
         ::fsync(file);
         ::close(file);
       }},
      {"page_faults",
       [](Stage&) {
         constexpr std::size_t kBytes = 16 << 20;
         void* const pages =
             ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         for (std::size_t i = 0; i < kBytes; i += 4096) static_cast<volatile char*>(pages)[i] = 1;
         ::munmap(pages, kBytes);
       }},
      {"move_cores",
       [](Stage& stage) {
         cpu_set_t set;
         CPU_ZERO(&set);
         CPU_SET(stage.ctx.step() % 2, &set);
         ::sched_setaffinity(0, sizeof set, &set);
       }},
      {"host_work", [](Stage&) { work_for(0.2); }},
      {"spawn",
       [](Stage&) {
         char name[] = "/bin/true";
         char* words[] = {name, nullptr};
         pid_t child = 0;
         if (::posix_spawn(&child, name, nullptr, nullptr, words, environ) == 0) {
           ::waitpid(child, nullptr, 0);
         }
       }},
      {"locks_in_turn",
       [](Stage& stage) {
         const int file = ::open(stage.file().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
         ::flock(file, LOCK_EX);
         work_for(0.002);
         ::close(file);
       }},
      {"reports",
       [](Stage& stage) {
         stage.ctx.report({{"step", stage.ctx.step()}});
       }},
      {"slow_callback",
       [](Stage& stage) {
         stage.ctx.report({{"step", stage.ctx.step()}});
       }},
      {"reads", [](Stage& stage) { (stage.steps.sum() * 2.0).to_vector(); }},
      {"threads",
       [](Stage&) {
         std::mutex mutex;
         const auto work = [&] {
           const std::lock_guard guard(mutex);
           work_for(0.001);
         };
         std::jthread a(work), b(work), c(work);
       }},
      {"nice", [](Stage&) { (void)::nice(1); }},
      {"uneven_work", [](Stage& stage) { work_for(stage.rank == 0 ? 0.03 : 0.001); }},
      {"sleeps", [](Stage&) { ::poll(nullptr, 0, 50); }},
      {"new_programs",
       [](Stage& stage) { run_chain(1 + static_cast<int>(stage.ctx.step() % 40)); }},
  };
  return all;
}

/// Returns what the modes with a long beginning do before the first step.
const std::map<std::string, Act>& beginnings() {
  static const std::map<std::string, Act> all{
      {"long_compile",
       [](Stage& stage) {
         run_chain(stage.config["ops"]);
         say("ran_chain");
       }},
      {"slow_first_batch", [](Stage& stage) { read_items(stage, [] { work_for(1.5); }); }},
      {"long_host_work", [](Stage& stage) { work_for(stage.is_victim ? 1.5 : 0.01); }},
  };
  return all;
}

}  // namespace

void stay_here() {
  say_staged();
  for (;;) ::pause();
}

void work_for(double seconds) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  };
  const double end = now() + seconds;
  while (now() < end) {
  }
}

void run_stage(weft::TrainContext& ctx, const weft::Config& config) {
  const std::string mode = config["mode"];
  Stage stage{.ctx = ctx, .config = config, .steps = Steps(ctx)};
  const auto accident = accidents().find(mode);
  const auto common = common_accidents().find(mode);
  const auto habit = habits().find(mode);
  if (const auto beginning = beginnings().find(mode); beginning != beginnings().end()) {
    if (stage.rank == 0) say_staged();
    beginning->second(stage);
  }
  for (;;) {
    const std::uint64_t step = ctx.step();
    const bool at = step == kStep;
    if (at && (mode == "on_report" || mode == "slow_end")) return ctx.report({{"step", step}});
    if (at && mode == "return" && stage.is_victim) return;
    if (at && accident != accidents().end() && stage.is_victim) accident->second(stage);
    if (at && common != common_accidents().end()) common->second(stage);
    if (habit != habits().end()) habit->second(stage);
    stage.steps.step();
    if (step == kStep + 1 && stage.rank == 0 && accident == accidents().end() &&
        common == common_accidents().end()) {
      say_staged();
    }
  }
}
