/// A program whose victim worker misbehaves at step --at in the way that --mode names; with
/// --max-failures it does so only the first time. It writes the result of the job to --json.

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <weft/weft.hpp>

#include "spmd/tensor/tensor_source.hpp"
#include "tests/fault/misbehave.hpp"
#include "transport/board/board.hpp"
#include "transport/state/state_directory.hpp"

namespace {

struct Options {
  std::string mode = "none";
  int victim = 1;
  int workers = 3;
  int chips = 2;
  double timeout_s = 60;
  std::uint64_t at = 3;
  std::uint64_t steps = 8;
  int max_failures = 0;
  weft::Restart restart = weft::Restart::worker;
  double hang_timeout_s = 0;
  std::optional<double> hang_warning_s{};
  double grace_s = 25;
  int state_versions = 2;
  std::uint64_t save_every = 0;
  bool managed = false;
  double keep_for_rescue_s = 0;
  std::string checkpoint_path;
  std::uint64_t ask_every = 1;
  double backoff_s = 0.1;
  int deaths = 0;
  bool first_reports = false;
  std::string storage = "~/weft_runs";
  int check_replicas_every = 0;
  weft::TlsConfig tls{};
  std::string json;
};

void add_up(weft::TrainContext& ctx, std::size_t size) {
  ctx.on_each_chip([size](weft::Chip& chip) {
    std::vector<float> ones(size, 1.0F);
    chip.all_reduce(ones);
  });
}

/// The job's memory, opened before the loops run, because its segments have no names after that.
std::optional<weft::JobMemory> memory_to_flip;

/// Flips a bit of `sum` in the memory of the victim's last chip. All chips have a replica of `sum`.
void flip(weft::TrainContext& ctx, const weft::Parameter& sum, bool victim) {
  const float value = sum.to_vector()[0];
  const int chips = ctx.num_local_devices();
  const int first = ctx.world_rank() * chips;
  const weft::Mesh& mesh = *ctx.mesh();
  const std::uint64_t step = ctx.step();
  weft::JobMemory& memory = memory_to_flip.value();
  ctx.on_each_chip([&](weft::Chip& chip) {
    if (!victim || chip.local_index() != chips - 1) return;
    // No table has this version yet, but its memory is that of one of the last few versions.
    const weft::StateDirectory directory(memory, mesh, first);
    for (std::uint64_t earlier = step - 1; earlier > step - 4; --earlier) {
      const auto table = directory.read(earlier);
      if (!table || table->tensors.empty()) continue;
      std::byte* bytes = memory.arena(first + chips - 1) + table->tensors.front().offset;
      float held = 0;
      std::memcpy(&held, bytes, sizeof held);
      if (held != value) continue;
      bytes[0] ^= std::byte{1};
      return;
    }
    weft::fail(weft::Errc::not_found, "'sum' lies where it never did");
  });
}

/// Creates the file and returns true, unless the file exists.
bool first_time(const std::string& file) {
  if (std::filesystem::exists(file)) return false;
  std::ofstream(file) << "once";
  return true;
}

/// Ends the process if it is one of the victim's first `deaths` successors.
void die_again(const std::string& once, int deaths) {
  const std::string file = once + ".deaths";
  int before = 0;
  std::ifstream(file) >> before;
  if (!std::filesystem::exists(once) || before == deaths) return;
  std::ofstream(file) << before + 1;
  std::_Exit(3);
}

/// Writes the current step and the sum to this worker's file of a checkpoint.
void save(weft::TrainContext& ctx, const weft::Tensor& sum) {
  const std::string folder = fmt::format("{}/saved-{}", ctx.run_dir(), ctx.world_rank());
  std::filesystem::create_directory(folder);
  std::ofstream(fmt::format("{}/{}", folder, ctx.world_rank()))
      << fmt::format("{} {}", ctx.step(), sum.to_vector()[0]);
  ctx.report({}, weft::Checkpoint{folder});
}

/// Returns the sum that save() saved.
float saved_sum(const weft::TrainContext& ctx) {
  if (!ctx.checkpoint()) return 0;
  std::ifstream file(fmt::format("{}/{}", ctx.checkpoint()->path, ctx.world_rank()));
  std::uint64_t step = 0;
  float sum = 0;
  if (!(file >> step >> sum) || step != ctx.step()) {
    weft::fail(weft::Errc::corrupt, "the checkpoint {} isn't of step {}", ctx.checkpoint()->path,
               ctx.step());
  }
  return sum;
}

std::atomic<bool> square_throws{false};
std::atomic<int> squares_left{0};  ///< if n > 0, the n-th call from now on kills the process

/// Returns x * x, computed by a CustomOp.
weft::Tensor square(const weft::Tensor& x, const char* name) {
  const weft::CustomOp op{
      .name = name, .sharding_rule = "i -> i", .kernel = [](const weft::CustomCall& call) {
        if (square_throws) throw std::runtime_error("boom");
        if (squares_left > 0 && --squares_left == 0) std::raise(SIGKILL);
        std::ranges::transform(call.operand<float>(0), call.result<float>().begin(),
                               [](float element) { return element * element; });
      }};
  return weft::custom_call(op, {x});
}

/// Runs a scan of 300 iterations. Each has a collective and uses the previous one's result.
weft::Tensor scanned_total(const weft::Tensor& x) {
  const auto body = [&](const weft::Tensor& carry, const weft::Tensor& weight) {
    const weft::Tensor total = weft::sum(square(x * 0.125 + carry, "square"));
    const weft::Tensor next = weft::cond(
        weft::greater(total, 40.0), [&] { return carry * 0.5 + total * 0.0625; },
        [&] { return weft::tanh(total * weight); });
    return std::pair(next, next);
  };
  const auto [last, all] = weft::scan(body, weft::full({}, 0.0), weft::full({300}, 0.375));
  const weft::Tensor grown =
      weft::while_loop([](const weft::Tensor& c) { return weft::less(c, 1000.0); },
                       [](const weft::Tensor& c) { return c * 1.5 + 1.0; }, last);
  return weft::sum(all) + grown;
}

/// Repeats epochs of six training steps, which use an optimizer of this epoch, and four
/// evaluations. In every second epoch the evaluations update `count`, in the others they only read.
/// Each new optimizer is made after a run in the epoch's first step, while the previous one still
/// exists. `frozen` is never updated. In mode "twin" an unused parameter that is also called
/// "weight" is made before `weight`.
void epochs(weft::TrainContext& ctx, const weft::Config& config) {
  constexpr std::uint64_t kEpoch = 10, kTraining = 6;
  const bool victim = ctx.world_rank() == config["victim"].get<int>();
  const auto begin_step = [&] {
    if (victim && ctx.step() == config["at"] && first_time(config["once"])) std::raise(SIGKILL);
  };
  std::vector<float> elements(12 * static_cast<std::size_t>(ctx.num_devices()));
  std::iota(elements.begin(), elements.end(), ctx.step() == 0 ? 0.5F : 100.0F);
  const std::int64_t size = std::ssize(elements);
  const weft::Parameter frozen = weft::make_parameter("frozen", elements, {size});
  std::optional<weft::Parameter> twin;
  if (config["mode"] == "twin") twin = weft::make_parameter("weight", std::vector<float>(4), {4});
  const weft::Parameter weight =
      weft::make_parameter("weight", std::vector<float>{1, 2, 3, 4}, {4});
  weft::Parameter count = weft::make_parameter("count", std::vector<float>{0}, {1});
  weft::Parameter seen = weft::make_parameter("seen", std::vector<float>{0}, {1});
  const auto data = [&] {
    std::vector<float> pixels(elements.size(), 0.1F * static_cast<float>(ctx.step() + 1));
    weft::Tensor x = weft::to_device(pixels, {size});
    weft::mark_sharding(x, *ctx.mesh(), {{"data"}});
    return x;
  };
  const auto report = [&](const weft::Tensor& value) {
    ctx.report({{"step", ctx.step()}, {"value", value.item()}, {"weight", weight.to_vector()}});
  };
  std::optional<weft::SGD> optimizer;
  const auto make_optimizer = [&] {
    optimizer.emplace(std::vector{weight}, weft::SGD::Options{.lr = 0.01, .momentum = 0.9});
  };
  while (ctx.step() < config["steps"].get<std::uint64_t>()) {
    const bool counts = ctx.step() / kEpoch % 2 == 1;
    if (!optimizer) make_optimizer();
    while (ctx.step() % kEpoch < kTraining) {
      begin_step();
      if (ctx.step() % kEpoch == 0) {
        seen.assign(seen + weft::sum(weight));
        seen.item();
        make_optimizer();
      }
      const weft::Tensor factor =
          ctx.step() == 0 ? weft::mean(frozen * data()) : weft::mean(frozen * frozen) * 1e-4;
      const weft::Tensor loss = factor * weft::sum(weight * weight);
      optimizer->step(weft::grad(loss, std::vector<weft::Parameter>{weight}));
      weft::sync();
      report(loss);
    }
    if (!counts) optimizer.reset();
    while (ctx.step() % kEpoch >= kTraining) {
      begin_step();
      const weft::Tensor value = weft::sum(data() * frozen) + weft::sum(weight) + weft::sum(count);
      if (counts) count.assign(count + 1);
      weft::sync();
      report(value);
    }
  }
}

/// Returns a loss with a label, on the last chip, that isn't a valid class.
weft::Tensor label_loss(const weft::TrainContext& ctx) {
  const std::int64_t size = ctx.num_devices();
  std::vector<std::int32_t> labels(static_cast<std::size_t>(size), 1);
  labels.back() = 12;
  const weft::Tensor given = weft::to_device(labels, {size});
  weft::mark_sharding(given, *ctx.mesh(), {{"data", "model"}});
  return weft::cross_entropy(weft::iota({size, 10}, 1, weft::DType::f32), given);
}

/// At step 3 loads the sum of step 1, except in a loop that was restarted after a worker's death.
void go_back(const weft::TrainContext& ctx, const std::string& once, const weft::Parameter& sum) {
  const std::string file = once + ".safetensors";
  if (ctx.step() == 1) weft::save(std::vector{sum}, file);
  if (ctx.step() != 3 || !first_time(fmt::format("{}.{}", once, ctx.world_rank()))) return;
  weft::load(std::vector{sum}, file);
}

/// Saves the sum. Saves a second tensor too if `now`, which is true only for the victim's second
/// save.
void save_other(weft::CheckpointManager& checkpoints, const weft::Parameter& sum, bool now) {
  std::vector<weft::Parameter> state{sum};
  if (now) state.push_back(weft::make_parameter("bias", std::vector<float>{0}, {1}));
  checkpoints.save(state, {.force = true});
}

/// The step that the loop has reached.
std::atomic<std::uint64_t> loop_step{0};

/// A source of zeros. The first read waits until this process's loop has reached `step`, and then
/// kills the process. A save reads the source, so the process dies while it writes the save.
class Deadly : public weft::TensorSource {
 public:
  Deadly(std::string once, std::uint64_t step) : once_(std::move(once)), step_(step) {}
  void read(std::span<const Target> targets) const override {
    if (first_time(once_)) {
      while (loop_step < step_) ::sched_yield();
      std::raise(SIGKILL);
    }
    for (const Target& target : targets) std::memset(target.memory, 0, sizeof(float));
  }
  std::uint64_t digest() const override { return 0; }

 private:
  const std::string once_;
  const std::uint64_t step_;
};

weft::Parameter deadly(const std::string& once, std::uint64_t step) {
  weft::Parameter zero = weft::make_parameter("zero", std::vector<float>{0}, {1});
  weft::set_source(zero, std::make_shared<Deadly>(once, step), {}, std::source_location::current());
  return zero;
}

/// Makes a loader whose sampler has another seed in the victim.
void load_other(bool victim) {
  const weft::DistributedSamplerOptions order{
      .size = 60, .batch_size = 6, .seed = victim ? 1U : 0U};
  weft::DeviceLoader loader(weft::tensors({{"x", std::vector<float>(60)}}),
                            {.sampler = std::make_shared<const weft::DistributedSampler>(order)});
}

void loop(weft::TrainContext& ctx, const weft::Config& config) {
  const std::string mode = config["mode"];
  if (mode == "epochs" || mode == "twin") return epochs(ctx, config);
  if (mode == "read_stdin") say_stdin();
  const bool victim = ctx.world_rank() == config["victim"].get<int>();
  const std::string once = config["once"];
  weft::Parameter sum = weft::make_parameter("sum", std::vector<float>{saved_sum(ctx)}, {1});
  const auto save_every = config["save_every"].get<std::uint64_t>();
  weft::CheckpointManager checkpoints;
  std::vector<weft::Parameter> saved{sum};
  // The process dies in the save, but 2 steps later, when all chips have committed the saved step.
  if (mode == "die_saving") saved.push_back(deadly(once + ".deaths", save_every + 2));
  const auto ask_every = config["ask_every"].get<std::uint64_t>();
  std::vector<float> elements(static_cast<std::size_t>(ctx.num_devices()) * 4);
  std::iota(elements.begin(), elements.end(), 0.0F);
  while (ctx.step() < config["steps"].get<std::uint64_t>()) {
    loop_step = ctx.step();
    const bool asks = mode == "saves" && ctx.step() % ask_every == 0;
    if (asks && ctx.reached_preemption()) return save(ctx, sum);
    const bool now = victim && ctx.step() == config["at"] && (once.empty() || first_time(once));
    if (now && mode == "return") return;
    if (now) misbehave(mode);
    if (victim && mode == "throw_always" && ctx.step() == config["at"]) misbehave("throw");
    if (victim && mode == "kill_trainer" && ctx.step() == config["at"]) kill_trainer();
    if (victim && mode == "slow") misbehave(mode);
    if (mode == "big" && ctx.step() == config["at"]) elements.resize(elements.size() << 20);
    if (mode == "go_back") go_back(ctx, once, sum);
    if (mode == "save_other" && ctx.step() + 1 >= config["at"]) save_other(checkpoints, sum, now);
    if (mode == "load_other") load_other(victim);
    if (now && config["deaths"] > 0) std::raise(SIGKILL);
    if (mode == "all_deadlock" && ctx.step() == config["at"]) misbehave("lock_twice");
    if (mode == "all_sleep" && ctx.step() == 3 &&
        (once.empty() || first_time(fmt::format("{}.{}", once, ctx.world_rank())))) {
      for (;;) ::pause();
    }
    if (now && mode == "save_alone") checkpoints.save(std::vector{sum}, {.force = true});
    if (now && mode == "other_data") elements.back() += 1;
    if (mode == "other_size" && ctx.step() == 3) add_up(ctx, victim ? 5 : 4);
    if (now && mode == "chip_code") add_up(ctx, 4);
    if (mode.ends_with("flip") && ctx.step() == 5) flip(ctx, sum, victim);
    if (mode == "return_before_new" && ctx.step() == 3) {
      if (victim) return;
      add_up(ctx, 4);
    }
    const weft::Tensor x = weft::to_device(elements, {std::ssize(elements)});
    weft::mark_sharding(x, *ctx.mesh(), {{"data", "model"}});
    weft::Tensor total = weft::sum(x * x);
    if (now && mode == "read_alone") total.item();
    if (ctx.step() >= config["at"] && mode == "nan") total = weft::log(-total);
    if (ctx.step() == config["at"] && mode == "label") total = total + label_loss(ctx);
    if (now && mode == "diverge") total = weft::sum(x * x * 2.0);
    if (now && mode == "scan_kill") squares_left = 250;
    if (mode.starts_with("scan")) total = scanned_total(x);
    if (mode.starts_with("custom")) {
      if (now && mode == "custom_throw") square_throws = true;
      const bool diverges = now && mode == "custom_diverge";
      total = weft::sum(square(x, diverges ? "other_square" : "square"));
    }
    sum.assign(sum + total);
    weft::sync();
    const weft::Metrics metrics{
        {"step", ctx.step()}, {"total", total.item()}, {"sum", sum.to_vector()[0]}};
    if (ctx.world_rank() == 0 || !config["first_reports"]) ctx.report(metrics);
    if (config["managed"]) {
      checkpoints.save_async(saved);
    } else if (save_every != 0 && ctx.step() % save_every == 0) {
      save(ctx, sum);
    }
  }
  if (mode != "ends_again") return;
  // The reported times all differ, and all workers have reported before the victim is killed.
  ctx.report({{"time", std::chrono::steady_clock::now().time_since_epoch().count()}});
  add_up(ctx, 4);
  if (victim && first_time(once)) std::raise(SIGKILL);
}

/// Prints the job's id for the test, and misbehaves in callbacks in some modes.
class Announce : public weft::Callback {
 public:
  explicit Announce(const std::string& mode) : mode_(mode) {}
  void on_start(const weft::JobInfo& job) override {
    fmt::print("job {}\n", job.id);
    std::fflush(stdout);
    folder_ = job.path;
    job_ = job.id;
    if (mode_.ends_with("flip")) memory_to_flip = weft::JobMemory::open(job.id);
  }
  void on_report(const weft::Metrics&) override {
    if (mode_ == "lose_folder") std::filesystem::remove_all(folder_);
    if (mode_ == "exit_in_callback") std::exit(5);
    if (mode_ == "quick_exit_in_callback") std::quick_exit(5);
    if (mode_ == "fork_in_callback") fork_child();
  }

 private:
  /// Forks a child that calls exit(), not exec or _exit(). This must not free the job's resources.
  void fork_child() const {
    const pid_t child = ::fork();
    if (child == 0) std::exit(0);
    ::waitpid(child, nullptr, 0);
    weft::JobMemory::open(job_);
    weft::Board::open(job_, true);
  }

  std::string mode_;
  std::string folder_;
  std::string job_;
};

/// Calls a fit() that throws. The workers, which the next fit() starts, must skip this call.
void fit_in_vain() {
  try {
    weft::Trainer([](weft::TrainContext&) { std::abort(); }, {.scaling = {.topology = "7y"}}).fit();
  } catch (const weft::Error&) {
  }
}

int run(const Options& options) {
  if (options.mode == "second_fit") fit_in_vain();
  // A worker removes the token from its environment when it reaches fit().
  const char* token = std::getenv("WEFT_JOB_TOKEN");
  if (token != nullptr) std::ofstream(options.json + ".token") << token;
  const char* index = std::getenv("WEFT_PROCESS_INDEX");
  const bool victim = index != nullptr && std::atoi(index) == options.victim;
  if (index != nullptr && options.mode.ends_with("flip")) {
    memory_to_flip = weft::JobMemory::open(std::getenv("WEFT_JOB_ID"));
  }
  if (victim && options.mode == "never_join") stop_at_mark("main");
  if (victim && options.deaths > 0) die_again(options.json + ".once", options.deaths);
  weft::Trainer trainer(
      loop, {.loop_config = {{"mode", options.mode},
                             {"victim", options.victim},
                             {"at", options.at},
                             {"once", options.max_failures != 0 ? options.json + ".once" : ""},
                             {"save_every", options.save_every},
                             {"managed", options.managed},
                             {"first_reports", options.first_reports},
                             {"ask_every", options.ask_every},
                             {"deaths", options.deaths},
                             {"steps", options.steps}},
             .scaling = {.num_workers = options.workers, .chips_per_worker = options.chips},
             .backend = {.timeout_s = options.timeout_s,
                         .spmd = {.mesh_shape = {std::max(options.workers, 1), options.chips},
                                  .axis_names = {"data", "model"}},
                         .tls = options.tls},
             .run = {.name = "fault",
                     .storage_path = options.storage,
                     .failure = {.max_failures = options.max_failures,
                                 .restart = options.restart,
                                 .backoff_s = options.backoff_s,
                                 .hang_timeout_s = options.hang_timeout_s,
                                 .hang_warning_s = options.hang_warning_s,
                                 .state_versions = options.state_versions},
                     .checkpoint = {.path = options.checkpoint_path,
                                    .save_interval = static_cast<int>(options.save_every)},
                     .callbacks = {std::make_shared<Announce>(options.mode)},
                     .grace_s = options.grace_s,
                     .keep_for_rescue_s = options.keep_for_rescue_s,
                     .check_replicas_every = options.check_replicas_every}});
  const weft::Result result = trainer.fit();
  std::filesystem::remove(options.json + ".once");
  std::filesystem::remove(options.json + ".token");
  std::filesystem::remove(options.json + ".once.deaths");
  std::filesystem::remove(options.json + ".once.safetensors");
  for (int w = 0; w < options.workers; ++w) {
    std::filesystem::remove(fmt::format("{}.once.{}", options.json, w));
  }
  weft::Config json{
      {"ok", result.ok()}, {"path", result.path}, {"history", result.metrics_history}};
  for (const weft::Failure& failure : result.failures) {
    json["failures"].push_back(failure.message);
  }
  if (result.checkpoint) json["checkpoint"] = result.checkpoint->path;
  if (result.error) {
    json["code"] = weft::to_string(result.error->code);
    json["message"] = result.error->message;
    json["worker"] = result.error->worker;
    json["pid"] = result.error->pid;
    json["signal"] = result.error->signal;
    json["step"] = result.error->step;
    json["collective"] = result.error->collective;
  }
  std::ofstream(options.json) << json.dump();
  return result.ok() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Misbehaves on purpose."};
  app.add_option("--mode", options.mode);
  app.add_option("--victim", options.victim);
  app.add_option("--workers", options.workers);
  app.add_option("--chips", options.chips);
  app.add_option("--timeout", options.timeout_s);
  app.add_option("--at", options.at, "step");
  app.add_option("--steps", options.steps);
  app.add_option("--max-failures", options.max_failures);
  app.add_option_function<std::string>("--restart", [&options](const std::string& text) {
    options.restart = weft::parse_restart(text);
  });
  app.add_option("--hang-timeout", options.hang_timeout_s);
  app.add_option("--hang-warning", options.hang_warning_s);
  app.add_option("--grace", options.grace_s);
  app.add_option("--state-versions", options.state_versions);
  app.add_option("--save-every", options.save_every);
  app.add_flag("--managed", options.managed, "save by a CheckpointManager");
  app.add_option("--keep-for-rescue", options.keep_for_rescue_s);
  app.add_option("--checkpoint-path", options.checkpoint_path);
  app.add_option("--ask-every", options.ask_every);
  app.add_option("--backoff", options.backoff_s);
  app.add_option("--deaths", options.deaths,
                 "at --at the victim is killed, and so many of its successors before they join");
  app.add_flag("--first-reports", options.first_reports, "worker 0 alone reports metrics");
  app.add_option("--storage", options.storage);
  app.add_option("--check-replicas-every", options.check_replicas_every);
  app.add_option("--tls-certificate", options.tls.certificate);
  app.add_option("--tls-key", options.tls.key);
  app.add_option("--tls-ca", options.tls.ca);
  app.add_option("--tls-listen", options.tls.listen);
  app.add_option("--json", options.json)->required();
  CLI11_PARSE(app, argc, argv);
  return run(options);
}
