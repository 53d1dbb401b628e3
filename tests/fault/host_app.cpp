/// A job for tests over several hosts: each step adds to a counter without a collective, and some
/// steps also reduce a value over all chips. It may also add a large sum, which runs between the
/// hosts while the chips compute something else.

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <weft/weft.hpp>

namespace {

struct Plan {
  std::uint64_t steps = 40;
  std::uint64_t meets_every = 0;  ///< the interval in steps; 0: never
  bool shifts = false;            ///< each step shifts the parts of a value along the chips
  bool is_whole = false;          ///< each host has the whole state
  bool adds = false;              ///< each step adds a large sum
  std::string once{};             ///< the file that exists after the action below
  std::uint64_t acts_at = 0;      ///< the step of the action; 0: half of the steps
  int kills = -1;                 ///< the worker that kills itself
  int signals = -1;               ///< the worker that sends `signal` to its parent
  int signal = SIGKILL;
  int waits = -1;  ///< the worker that makes `once`.waits and waits until `once` exists
  std::uint64_t save_every = 0;  ///< the interval in steps; 0: no checkpoints
};
Plan plan;  // main() sets it before fit(), in the workers too

std::atomic<bool> dies_in_copy{false};  ///< the next copied() kills this process

/// Returns x, copied by an op that no pass moves. If `dies_in_copy`, the op kills the process.
weft::Tensor copied(const weft::Tensor& x) {
  const weft::CustomOp op{
      .name = "copied", .sharding_rule = "i j -> i j", .kernel = [](const weft::CustomCall& call) {
        if (dies_in_copy) ::kill(::getpid(), SIGKILL);
        std::ranges::copy(call.operand<float>(0), call.result<float>().begin());
      }};
  return weft::custom_call(op, {x});
}

/// Adds the product of matrices of ones. The chips' parts of the product are added up while the
/// chips copy another matrix.
class LargeSum {
 public:
  explicit LargeSum(const weft::Mesh& mesh) { weft::mark_sharding(ones_, mesh, {{"data"}, {}}); }
  void add() {
    total_.assign(total_ + weft::matmul(weft::transpose(ones_, 0, 1), ones_));
    other_.assign(copied(other_));
  }
  weft::Parameter& total() { return total_; }

 private:
  static constexpr std::int64_t kSide = 1024;
  static weft::Parameter filled(const char* name, float value, std::int64_t rows) {
    const std::vector<float> values(static_cast<std::size_t>(rows * kSide), value);
    return weft::make_parameter(name, values, {rows, kSide});
  }
  weft::Parameter total_ = filled("total", 0, kSide);
  weft::Parameter other_ = filled("other", 0, kSide);
  weft::Parameter ones_ = filled("ones", 1, 8);
};

void count(weft::TrainContext& ctx) {
  weft::Parameter counter = weft::make_parameter("counter", std::vector<float>{0}, {1});
  weft::Parameter sum = weft::make_parameter("sum", std::vector<float>(8, 0), {8});
  if (!plan.is_whole) weft::mark_sharding(sum, *ctx.mesh(), {{"data"}});
  weft::Parameter shifted =
      weft::make_parameter("shifted", std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}, {8});
  if (!plan.is_whole) weft::mark_sharding(shifted, *ctx.mesh(), {{"data"}});
  std::optional<LargeSum> large;
  if (plan.adds) large.emplace(*ctx.mesh());
  const auto shift =
      weft::shard_map([](const weft::Tensor& part) { return weft::ring_shift(part, {"data"}); },
                      *ctx.mesh(), weft::PartitionSpec{"data"}, weft::PartitionSpec{"data"});
  std::optional<weft::CheckpointManager> checkpoints;
  if (plan.save_every != 0) checkpoints.emplace();
  const std::vector<weft::Parameter> state{counter, sum, shifted};
  while (ctx.step() < plan.steps) {
    const bool acts = ctx.world_rank() == std::max({plan.kills, plan.signals, plan.waits});
    const std::uint64_t moment = plan.acts_at != 0 ? plan.acts_at : plan.steps / 2;
    if (acts && ctx.step() == moment && ::access(plan.once.c_str(), F_OK) != 0) {
      std::ofstream(plan.once + (plan.waits >= 0 ? ".waits" : "")) << "now\n";
      while (plan.waits >= 0 && ::access(plan.once.c_str(), F_OK) != 0) ::sched_yield();
      if (plan.adds) {
        dies_in_copy = true;
      } else if (plan.kills >= 0) {
        ::kill(::getpid(), SIGKILL);
      } else if (plan.signals >= 0) {
        ::kill(::getppid(), plan.signal);
        for (;;) ::pause();  // the parent ends this process, or dies and takes it with it
      }
    }
    if (large) large->add();
    counter.assign(counter + 1);
    if (plan.shifts) shifted.assign(shift(shifted));
    if (plan.meets_every != 0 && ctx.step() % plan.meets_every == 0) {
      sum.assign(sum * 0.5 + weft::sum(sum + 1) * 0.01);
    }
    weft::sync();
    if (checkpoints) checkpoints->save(state);
  }
  const weft::Tensor whole = weft::sum(sum);
  ctx.report({{"counter", counter.item()},
              {"sum", whole.item()},
              {"least_total", large ? weft::amin(large->total()).item() : 0},
              {"most_total", large ? weft::amax(large->total()).item() : 0},
              {"shifted", shifted.to_vector<float>()}});
}

/// The fit() calls that main() makes.
struct Calls {
  int count = 1;
  bool end_early = false;   ///< main() returns after the first of two calls
  bool are_caught = false;  ///< main() continues if the first of two calls throws
  std::string
      first_storage{};  ///< the storage path of the first of two calls; "": that of the second
  std::string pause{};  ///< the file for which main() waits on host 0 before the second call
  std::string child{};  ///< the file for the pid of a child that outlives main(); "": no child
  double last_timeout_s = 0;  ///< backend.timeout_s of the second of two calls; 0: as of the first
};

/// Makes the first of two calls. The second job depends on its result.
void make_first_call(const Calls& calls, weft::TrainerOptions options) {
  if (!calls.first_storage.empty()) options.run.storage_path = calls.first_storage;
  try {
    const weft::Result result = weft::Trainer(count, options).fit();
    if (result.ok()) plan.steps += result.metrics.at("counter").get<std::uint64_t>();
  } catch (const weft::Error& error) {
    if (!calls.are_caught) throw;
    if (!weft::in_worker()) fmt::print(stderr, "the first call has thrown: {}\n", error.what());
  }
  fmt::print("between two calls\n");
  std::fflush(stdout);
  if (calls.pause.empty() || weft::in_worker()) return;
  while (::access(calls.pause.c_str(), F_OK) != 0) ::sched_yield();
}

/// Forks a child that doesn't end with this process, and writes its pid to the file. The child
/// doesn't hold the pipes from which the test reads.
void leave_child(const std::string& file) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(fd);
    ::alarm(300);
    for (;;) ::pause();
  }
  std::ofstream(file) << child << '\n';
}

/// Another loop: reports the number of the job's chips.
void add_chips(weft::TrainContext& ctx) {
  const std::vector<float> values(static_cast<std::size_t>(ctx.world_size()), 1);
  weft::Parameter ones = weft::make_parameter("ones", values, {ctx.world_size()});
  weft::mark_sharding(ones, *ctx.mesh(), {{"data"}});
  ctx.report({{"chips", weft::sum(ones).item()}});
}

}  // namespace

int main(int argc, char** argv) {
  std::string json;
  int workers = 2;
  weft::FailureConfig failure;
  CLI::App app{"Counts on all chips of a job."};
  app.add_option("--steps", plan.steps)->take_last();
  app.add_option("--meets-every", plan.meets_every);
  app.add_flag("--shifts", plan.shifts);
  app.add_flag("--whole", plan.is_whole);
  app.add_flag("--adds", plan.adds);
  app.add_option("--kills", plan.kills);
  app.add_option("--acts-at", plan.acts_at);
  app.add_option("--signals", plan.signals);
  app.add_option("--signal", plan.signal);
  app.add_option("--waits", plan.waits);
  app.add_option("--once", plan.once);
  app.add_option("--workers", workers)->take_last();
  weft::CheckpointConfig checkpoint;
  app.add_option("--save-every", plan.save_every);
  app.add_option("--checkpoints", checkpoint.path);
  app.add_option("--keep", checkpoint.max_to_keep);
  app.add_option("--max-failures", failure.max_failures);
  app.add_option("--host-timeout", failure.host_timeout_s);
  app.add_option("--state-versions", failure.state_versions);
  weft::RunConfig run{.name = "hosts"};
  app.add_option("--keep-for-rescue", run.keep_for_rescue_s);
  app.add_option("--json", json);
  weft::BackendConfig backend{.timeout_s = 300, .spmd = {}};
  app.add_option("--timeout", backend.timeout_s)->take_last();
  app.add_option("--network", backend.network);
  app.add_option("--ports", backend.ports);
  app.add_option_function<std::string>(
      "--wire", [&](const std::string& text) { backend.wire = weft::parse_wire(text); });
  app.add_option("--storage", run.storage_path)->take_last();
  app.add_option("--resume", run.resume)->take_last();
  Calls calls;
  app.add_option("--calls", calls.count, "of fit(), at most 2")->take_last();
  app.add_flag("--ends-early", calls.end_early);
  app.add_flag("--catches", calls.are_caught);
  app.add_option("--first-storage", calls.first_storage);
  app.add_option("--pause", calls.pause);
  app.add_option("--leaves-child", calls.child);
  app.add_option("--last-timeout", calls.last_timeout_s);
  int then_workers = 0;
  app.add_option("--then-workers", then_workers, "a job of another loop with so many workers");
  CLI11_PARSE(app, argc, argv);
  backend.spmd = {.mesh_shape = {workers}, .axis_names = {"data"}};
  run.failure = failure;
  checkpoint.save_interval = static_cast<int>(plan.save_every);
  run.checkpoint = checkpoint;
  weft::TrainerOptions options{.scaling = {.num_workers = workers}, .backend = backend, .run = run};
  if (calls.count > 1) {
    make_first_call(calls, options);
    if (calls.end_early) return 0;
    if (calls.last_timeout_s > 0) options.backend.timeout_s = calls.last_timeout_s;
  }
  weft::Result result;
  if (calls.count > 0) result = weft::Trainer(count, options).fit();
  if (then_workers > 0) {
    options.scaling.num_workers = then_workers;
    options.backend.spmd.mesh_shape = {then_workers};
    result = weft::Trainer(add_chips, options).fit();
  }
  if (!calls.child.empty()) leave_child(calls.child);
  if (!json.empty()) std::ofstream(json) << result.metrics.dump() << '\n';
  if (result.error) fmt::print(stderr, "{}\n", result.error->message);
  return result.ok() ? 0 : 1;
}
