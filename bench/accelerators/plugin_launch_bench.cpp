/// Measures what a run through a PJRT plug-in for CPUs costs beside its arithmetic: runs of a
/// program with many small tensors of state, in two versions that are written in turn.

#include <chrono>
#include <cstdlib>
#include <utility>

#include <benchmark/benchmark.h>

#include "chips/pjrt/pjrt_engine.hpp"
#include "chips/pjrt/pjrt_target.hpp"
#include "spmd/ops/builder.hpp"
#include "tests/support/real_plugins.hpp"

namespace weft::plugin_launch_bench {
namespace {

const Mesh kMesh({1}, {"data"});

/// Returns a program that doubles each of `count` parameters of 64 floats.
Program doubling(std::int64_t count) {
  Program program;
  Builder build(program);
  const TensorType type{DType::f32, {64}};
  for (std::int64_t i = 0; i < count; ++i) program.add_input(type, InputKind::param, "w", {});
  for (std::int64_t i = 0; i < count; ++i) {
    const auto input = static_cast<std::int32_t>(i);
    const ValueId w = program.inputs[static_cast<std::size_t>(i)].value;
    program.add_output(build.binary(OpKind::add, w, w), "w", {}, input);
  }
  return program;
}

void run_in_turn(benchmark::State& bench) {
  JobMemory memory = JobMemory::anonymous(
      {.job = std::string(32, '0'), .num_chips = 1, .arena_capacity = std::size_t{1} << 29});
  PjrtEngine engine(memory, kMesh, 0, BoardWriter(),
                    WaitPolicy::for_threads(1, std::chrono::seconds(60)));
  const auto loaded = engine.load(compile(doubling(bench.range(0)), kMesh, kPjrtCpuTarget));
  RunBuffers buffers;
  std::uint64_t end = memory.buffers_offset();
  for (auto* places : {&buffers.inputs, &buffers.outputs}) {
    for (std::int64_t i = 0; i < bench.range(0); ++i)
      places->push_back(std::exchange(end, end + 256));
  }
  engine.reserve(memory.buffers_offset(), end - memory.buffers_offset());
  std::uint64_t step = 0;
  for (auto _ : bench) {
    engine.run(loaded, ++step, buffers);
    std::swap(buffers.inputs, buffers.outputs);
  }
}
BENCHMARK(run_in_turn)
    ->ArgName("tensors")
    ->Arg(1)
    ->Arg(50)
    ->Arg(450)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

}  // namespace
}  // namespace weft::plugin_launch_bench

int main(int argc, char** argv) {
  const auto plugins = weft::testing::real_plugins();
  if (std::getenv("WEFT_PJRT_PLUGIN") == nullptr && plugins.empty()) {
    fmt::print(stderr, "nothing is measured: {}\n", weft::testing::kNoRealPlugins);
    return 0;
  }
  if (!plugins.empty()) ::setenv("WEFT_PJRT_PLUGIN", plugins.front().path.c_str(), 0);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
