#include "transport/reduce/reduce.hpp"

#include <weft/tensor/error.hpp>

#include "transport/reduce/f16c.hpp"
#include "transport/reduce/reduce_loops.hpp"

namespace weft {
namespace {

const ReduceTable& table_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::portable: return kPortableReduce;
#if defined(__x86_64__)
    case InstructionSet::avx2: return kAvx2Reduce;
    case InstructionSet::avx512: return kAvx512Reduce;
#else
    default: break;
#endif
  }
  WEFT_CHECK(false, static_cast<int>(set));
}

template <typename LoopOf>
const ReduceKinds<LoopOf>& kinds_of(const ReduceDTypes<LoopOf>& table, DType dtype) {
  switch (dtype) {
    case DType::pred: return table.pred;
    case DType::i32: return table.i32;
    case DType::u32: return table.u32;
    case DType::i64: return table.i64;
    case DType::bf16: return table.bf16;
    case DType::f32: return table.f32;
    case DType::f64: return table.f64;
    case DType::f16: return table.f16;
    case DType::i8: return table.i8;
    case DType::u8: return table.u8;
  }
  WEFT_CHECK(false, static_cast<int>(dtype));
}

template <typename LoopOf>
LoopOf loop_of(const ReduceDTypes<LoopOf>& table, ReduceKind kind, DType dtype) {
  const ReduceKinds<LoopOf>& kinds = kinds_of(table, dtype);
  switch (kind) {
    case ReduceKind::add: return kinds.add;
    case ReduceKind::max: return kinds.max;
    case ReduceKind::min: return kinds.min;
  }
  WEFT_CHECK(false, static_cast<int>(kind));
}

void run(ReduceLoop loop, Operands sources, Operands destinations, std::int64_t count) {
  loop({.sources = sources.bases.data(),
        .num_sources = sources.bases.size(),
        .source_offset = sources.offset,
        .destinations = destinations.bases.data(),
        .num_destinations = destinations.bases.size(),
        .destination_offset = destinations.offset,
        .count = static_cast<std::size_t>(count)});
}

}  // namespace

std::string_view to_string(InstructionSet set) noexcept {
  switch (set) {
    case InstructionSet::portable: return "portable";
    case InstructionSet::avx2: return "avx2";
    case InstructionSet::avx512: return "avx512";
  }
  return "unknown";
}

std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets{InstructionSet::portable};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && has_f16c()) {
    sets.push_back(InstructionSet::avx2);
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    sets.push_back(InstructionSet::avx512);
  }
#endif
  return sets;
}

void reduce(ReduceKind kind, DType dtype, Operands sources, Operands destinations,
            std::int64_t count) {
  static const ReduceTable& table = table_of(instruction_sets().back());
  run(loop_of(table, kind, dtype), sources, destinations, count);
}

ReduceLoop16 reduce_loop_16(ReduceKind kind, DType dtype) {
  return loop_of(kReduce16, kind, dtype);
}

void reduce(InstructionSet set, ReduceKind kind, DType dtype, Operands sources,
            Operands destinations, std::int64_t count) {
  run(loop_of(table_of(set), kind, dtype), sources, destinations, count);
}

}  // namespace weft
