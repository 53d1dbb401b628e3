/// Measures collectives between threads, each pinned to its own core, as the time of successive
/// calls without a pause. bench/collectives measures collectives between processes, and compares
/// them with peers.

#include <array>
#include <atomic>
#include <chrono>

#include <benchmark/benchmark.h>

#include "bench/cores.hpp"
#include "transport/collectives/communicator.hpp"
#include "transport/memory/wait.hpp"

namespace weft {
namespace {

constexpr int kChips = 2;
constexpr std::size_t kCapacity = std::size_t{64} << 20;

struct Team {
  JobMemory memory = JobMemory::anonymous({.job = "0123456789abcdef0123456789abcdef",
                                           .num_chips = kChips,
                                           .arena_capacity = kCapacity});
  Board board = Board::anonymous({.job = "0123456789abcdef0123456789abcdef", .num_chips = kChips});
  Mesh mesh{{kChips}, {"data"}};
};

void pin(int thread) {
  static const cpu_set_t allowed = bench::allowed_cores();
  bench::bind_to_core(allowed, thread);
}

/// Reports the time per call as the counter `ns`. (The time that the benchmark library reports is
/// divided by the number of threads.)
template <typename Body>
void measure(benchmark::State& state, const Body& body) {
  const auto begin = std::chrono::steady_clock::now();
  for (auto _ : state) body();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  state.counters["ns"] =
      benchmark::Counter(took.count() * 1e9 / static_cast<double>(state.max_iterations),
                         benchmark::Counter::kAvgThreads);
}

/// Measures the limit of a sync: each thread stores a word in its own cache line, and spins until
/// it sees the other thread's word.
void exchange(benchmark::State& state) {
  struct alignas(128) Line {
    std::atomic<std::uint32_t> epoch;
  };
  static std::array<Line, kChips> lines;
  const auto thread = static_cast<std::size_t>(state.thread_index());
  pin(state.thread_index());
  std::uint32_t epoch = lines[thread].epoch;
  measure(state, [&] {
    ++epoch;
    lines[thread].epoch.store(epoch, std::memory_order_release);
    while (lines[1 - thread].epoch.load(std::memory_order_acquire) < epoch) pause_cpu();
  });
}
BENCHMARK(exchange)->Threads(kChips)->UseRealTime();

void run_collective(benchmark::State& state, CollectiveKind kind) {
  static Team team;
  const int chip = state.thread_index();
  pin(chip);
  team.memory.reserve(chip, 0, kCapacity);
  // Uses the default policy, which assumes a core for each chip. A policy computed here would see
  // only the one core to which this thread was just bound.
  Communicator communicator(team.memory, team.mesh, chip, team.board.device(chip), WaitPolicy{});
  CollectiveCall call{.kind = kind,
                      .atoms = team.mesh.axis_atoms(0),
                      .source = kArenaTempOffset,
                      .destination = kArenaTempOffset,
                      .count = state.range(0) / 4,
                      .name = "fc1.weight.grad"};
  const PreparedCall prepared = communicator.prepare(call);
  measure(state, [&] { communicator.run(prepared); });
}

BENCHMARK_CAPTURE(run_collective, barrier, CollectiveKind::barrier)
    ->Arg(0)
    ->Threads(kChips)
    ->UseRealTime();
BENCHMARK_CAPTURE(run_collective, all_reduce, CollectiveKind::all_reduce)
    ->Arg(8)
    ->Arg(1024)
    ->Arg(4096)
    ->Arg(16384)
    ->Arg(65536)
    ->Arg(1 << 20)
    ->Arg(16 << 20)
    ->Threads(kChips)
    ->UseRealTime();

}  // namespace
}  // namespace weft

BENCHMARK_MAIN();
