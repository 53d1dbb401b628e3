/// Measures how long writing an event of the black box, or of a ring of calls, takes.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>

#include "transport/actors/call_ring.hpp"
#include "transport/blackbox/black_box_writer.hpp"

namespace {

using namespace weft;

BlackBoxWriter make_box(TickSource ticks, TraceLevel level = TraceLevel::sampled) {
  return BlackBoxWriter::anonymous(
      {.job = "bench", .num_workers = 1, .num_chips = 1, .level = level, .ticks = ticks});
}

void BM_Event(benchmark::State& state, TickSource ticks, TraceLevel level) {
  BlackBoxWriter box = make_box(ticks, level);
  const EventWriter chip = box.chip(0, 0);
  std::uint64_t number = 0;
  for (auto _ : state) chip.put(EventKind::enter, {.number = ++number, .value = 4096, .text = 8});
}
/// Measures reading the clock, which is the least time that an event can take.
void BM_Clock(benchmark::State& state, TickSource ticks) {
  for (auto _ : state) benchmark::DoNotOptimize(read_ticks(ticks));
}
BENCHMARK_CAPTURE(BM_Clock, counter, find_tick_source());
BENCHMARK_CAPTURE(BM_Clock, monotonic, TickSource::monotonic);

BENCHMARK_CAPTURE(BM_Event, counter, find_tick_source(), TraceLevel::sampled);
BENCHMARK_CAPTURE(BM_Event, monotonic, TickSource::monotonic, TraceLevel::sampled);
BENCHMARK_CAPTURE(BM_Event, off, find_tick_source(), TraceLevel::off);

void BM_SharedEvent(benchmark::State& state) {
  BlackBoxWriter box = make_box(find_tick_source());
  const EventWriter shared = box.shared(0);
  std::uint64_t number = 0;
  for (auto _ : state) shared.put(EventKind::log, {.number = ++number});
}
BENCHMARK(BM_SharedEvent);

void BM_Position(benchmark::State& state) {
  BlackBoxWriter box = make_box(find_tick_source());
  const EventWriter chip = box.chip(0, 0);
  std::uint32_t step = 0;
  for (auto _ : state) chip.position(8, ++step);
}
BENCHMARK(BM_Position);

/// Measures an event of a call, written by a thread with its own ring or with a shared ring.
void BM_CallEvent(benchmark::State& state, bool is_shared) {
  const auto ring = std::make_unique<CallRing>();
  const CallRingWriter writer(*ring, is_shared, find_tick_source(), {.slot = 1, .incarnation = 1});
  std::uint64_t number = 0;
  for (auto _ : state) {
    writer.put(writer.now(), {.kind = CallEventKind::sent,
                              .function = ActorFunctionKind::call,
                              .row = 7,
                              .number = ++number});
  }
}
BENCHMARK_CAPTURE(BM_CallEvent, own, false);
BENCHMARK_CAPTURE(BM_CallEvent, shared, true);

}  // namespace

BENCHMARK_MAIN();
