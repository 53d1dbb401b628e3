/// Measures the arithmetic of reductions for each instruction set, several numbers of chips, and
/// sizes that fit into caches or don't.

#include <benchmark/benchmark.h>

#include "transport/reduce/reduce.hpp"

namespace weft {
namespace {

/// The memory of each chip. Each arena begins on a page, as the arenas of a job do.
struct Arenas {
  Arenas(std::size_t count, std::size_t bytes) {
    const std::size_t pages = (bytes + sizeof(Page) - 1) / sizeof(Page);
    storage.resize(count * pages);
    for (std::size_t q = 0; q < count; ++q) bases.push_back(storage[q * pages].bytes);
  }

  struct alignas(4096) Page {
    std::byte bytes[4096];
  };
  std::vector<Page> storage;
  std::vector<std::byte*> bases;
};

/// Measures a reduction of all sources to all destinations, as in all_reduce.
void reduce_to_all(benchmark::State& state, InstructionSet set, DType dtype) {
  const auto bytes = static_cast<std::size_t>(state.range(1));
  const Arenas arenas(static_cast<std::size_t>(state.range(0)), bytes);
  const auto count = static_cast<std::int64_t>(bytes) / byte_size(dtype);
  for (auto _ : state) {
    reduce(set, ReduceKind::add, dtype, {arenas.bases, 0}, {arenas.bases, 0}, count);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * 2 * state.range(0) * state.range(1));
}

const int registered = [] {
  for (const InstructionSet set : instruction_sets()) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      benchmark::RegisterBenchmark(fmt::format("{}/{}", to_string(set), to_string(dtype)).c_str(),
                                   reduce_to_all, set, dtype)
          ->ArgNames({"chips", "bytes"})
          ->ArgsProduct({{2, 4, 16}, {4096, 65536, 16 << 20}});
    }
  }
  return 0;
}();

}  // namespace
}  // namespace weft

BENCHMARK_MAIN();
