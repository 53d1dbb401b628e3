/// Measures how much of the network's time collectives between hosts hide behind computation. Two
/// processes are hosts of one chip each, in network namespaces with a limited line between them.
/// Both run a plan like a backward pass: eight times a gradient of 1 MiB, its sum over the hosts,
/// and the product that leads to the next gradient; at the end the sums update parameters. The same
/// plan runs in three ways:
///
///   compute   the sums are left out
///   waiting   the chips wait for each sum at its start
///   overlap   the sums run while the chips compute
///
/// Prints the median of interleaved rounds for each way, and the share of the network's time that
/// is hidden: 1 - (overlap - compute) / (waiting - compute).
///
///   bench_overlap [ROUNDS [MBIT]]      default 5 500
///
/// Needs root, ip and tc (iproute2); otherwise it says why it is skipped, and exits with 77.
/// Expected on two quiet cores: at least 70 %.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "bench/bench_main.hpp"
#include "bench/collectives/process.hpp"
#include "bench/hosts/notes.hpp"
#include "chips/cpu/cpu_target.hpp"
#include "chips/cpu/executor.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/plan/overlap.hpp"
#include "tests/support/app_process.hpp"
#include "tests/support/net_machines.hpp"
#include "transport/network/overlapped_tier.hpp"

namespace {

using namespace weft;
using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

constexpr int kSkipped = 77;
constexpr int kLayers = 8;
constexpr std::int64_t kSide = 512;
constexpr std::int64_t kRows = 2048;
constexpr int kRunsPerRound = 2;
constexpr std::chrono::seconds kPatience{120};

enum class Way { compute, waiting, overlap };
constexpr Way kWays[] = {Way::compute, Way::waiting, Way::overlap};
constexpr std::string_view kNames[] = {"compute", "waiting", "overlap"};

/// A network whose collectives do nothing and take no time.
class NoNetwork final : public CollectiveTier {
 public:
  std::unique_ptr<const TierCall> prepare(const CollectiveCall& /*call*/) override {
    return std::make_unique<TierCall>();
  }
  void start(const StartedCall& /*started*/, const TierCall& /*call*/) override {}
  bool poll() override { return true; }
  void wait() override {}
};

Plan backward_pass(const Mesh& mesh) {
  Program program;
  Builder b(program);
  const TensorType matrix{DType::f32, {kSide, kSide}};
  const TensorType rows{DType::f32, {kRows, kSide}};
  const ValueId x = program.add_input(rows, InputKind::data, "x", Sharding::closed());
  std::vector<ValueId> weights;
  for (int layer = 0; layer < kLayers; ++layer) {
    weights.push_back(
        program.add_input(matrix, InputKind::param, fmt::format("w{}", layer), Sharding::closed()));
  }
  ValueId cotangent = x;
  for (int layer = kLayers; layer-- > 0;) {
    const ValueId weight = weights[static_cast<std::size_t>(layer)];
    const ValueId gradient = b.dot_general(x, cotangent, {{}, {}, {0}, {0}});
    const ValueId sum = b.all_reduce(mesh, gradient, mesh.axis_atoms(0), ReduceKind::add);
    program.add_output(b.binary(OpKind::subtract, weight, sum), fmt::format("w{}", layer),
                       Sharding::closed(), layer + 1);
    cotangent = b.dot_general(cotangent, weight, {{}, {}, {1}, {1}});
  }
  program.add_output(cotangent, "cotangent", Sharding::closed());
  std::vector<TensorType> inputs(1, rows);
  inputs.insert(inputs.end(), kLayers, matrix);
  std::vector<TensorType> outputs(kLayers, matrix);
  outputs.push_back(rows);
  return make_plan(program, mesh, inputs, outputs, kCpuTarget);
}

/// One host that runs the plan in one way.
class Host {
 public:
  Host(const Plan& plan, const Mesh& mesh, int side, Wires& wires, Way way)
      : memory_(JobMemory::anonymous({.job = fmt::format("overlap{}", static_cast<int>(way)),
                                      .num_chips = 1,
                                      .arena_capacity = std::size_t{256} << 20})) {
    const WaitPolicy policy = WaitPolicy::for_threads(2, kPatience);
    std::unique_ptr<CollectiveTier> network = std::make_unique<NoNetwork>();
    if (way != Way::compute) {
      auto tier = std::make_unique<NetworkTier>(memory_, mesh, side, wires, BoardWriter(), policy);
      if (way == Way::waiting) {
        network = std::move(tier);
      } else {
        network = std::make_unique<OverlappedTier>(std::move(tier), Recorder());
      }
    }
    executor_ =
        std::make_unique<Executor>(memory_, mesh, side, Recorder(), policy, 0, std::move(network));
    std::uint64_t end = memory_.buffers_offset();
    const auto buffer = [&](const TensorType& type) {
      const std::uint64_t begin = end;
      end += static_cast<std::uint64_t>(type.bytes());
      executor_->reserve(begin, static_cast<std::size_t>(type.bytes()));
      auto* const values = reinterpret_cast<float*>(executor_->host_address(begin));
      std::fill_n(values, type.num_elements(), 1.0F / kSide);
      return begin;
    };
    for (const TensorType& type : plan.input_types) buffers_.inputs.push_back(buffer(type));
    for (const TensorType& type : plan.output_types) buffers_.outputs.push_back(buffer(type));
    plan_ = executor_->load(plan);
  }
  /// Runs the plan, and returns the seconds that it takes.
  double run() {
    const Clock::time_point begin = Clock::now();
    executor_->run(plan_, ++step_, buffers_);
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

 private:
  JobMemory memory_;
  std::unique_ptr<Executor> executor_;
  std::shared_ptr<const LoadedPlan> plan_;
  RunBuffers buffers_;
  std::uint64_t step_ = 0;
};

double median(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

void run_side(int side, const std::string& folder, int rounds) {
  const auto wires = bench::connect(false, side, {1 - side}, bench::Notes(folder));
  await_wires(*wires, kPatience);
  const Mesh mesh = HybridMesh{{1}, {2}, {"data"}}.mesh();
  const Plan plan = backward_pass(mesh);
  verify(plan, mesh);
  if (flights(plan.steps).size() != kLayers) fail(Errc::corrupt, "the plan lacks waits");
  std::vector<std::unique_ptr<Host>> hosts;  // on the heap, because executors refer to them
  for (const Way way : kWays) {
    hosts.push_back(std::make_unique<Host>(plan, mesh, side, *wires, way));
  }
  std::vector<double> seconds[std::size(kWays)];
  for (int round = -1; round < rounds; ++round) {
    for (std::size_t way = 0; way < std::size(kWays); ++way) {
      hosts[static_cast<std::size_t>(Way::waiting)]->run();  // its sums synchronize both sides
      for (int i = 0; i < kRunsPerRound; ++i) {
        const double of_run = hosts[way]->run();
        if (round >= 0) seconds[way].push_back(of_run);
      }
    }
  }
  if (side != 0) return;
  double medians[std::size(kWays)];
  for (std::size_t way = 0; way < std::size(kWays); ++way) {
    medians[way] = median(seconds[way]);
    fmt::print("{:<8} {:>8.1f} ms\n", kNames[way], medians[way] * 1e3);
  }
  fmt::print("hidden   {:>8.1f} %\n",
             100 * (1 - (medians[2] - medians[0]) / (medians[1] - medians[0])));
}

Words words_of(const testing::NetMachines& machines, int side, const std::string& folder,
               int rounds) {
  Words words = machines.prefix(side);
  for (const std::string& word :
       {std::string("/usr/bin/env"),
        fmt::format("{}={}", bench::kAddressVariable, machines.address(side)),
        std::filesystem::read_symlink("/proc/self/exe").string(), std::string("side"),
        fmt::to_string(side), folder, fmt::to_string(rounds)}) {
    words.push_back(word);
  }
  return words;
}

int run(int rounds, int mbit) {
  testing::NetMachines machines(2);
  if (!machines.why_not().empty() || !machines.limit(0, mbit) || !machines.limit(1, mbit)) {
    fmt::print("SKIPPED: {}\n",
               machines.why_not().empty() ? "tc can't limit lines here" : machines.why_not());
    return kSkipped;
  }
  const bench::Meeting meeting;
  const std::string folder = std::filesystem::path(meeting.socket_path()).parent_path();
  testing::AppProcess first(words_of(machines, 0, folder, rounds));
  testing::AppProcess second(words_of(machines, 1, folder, rounds));
  const int failed = first.wait() | second.wait();
  fmt::print("{}{}", first.output(), second.output());
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::bench_main(
      argc, argv, [](int, char**) { return 0; },
      [&](int, const std::string&) {
        if (argc == 5) {
          run_side(std::atoi(argv[2]), argv[3], std::atoi(argv[4]));
          return 0;
        }
        const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
        const int mbit = argc > 2 ? std::atoi(argv[2]) : 500;
        if (rounds >= 1 && mbit >= 1) return run(rounds, mbit);
        fmt::print(stderr, "bench_overlap [ROUNDS [MBIT]]: expected numbers from 1\n");
        return 2;
      });
}
