#pragma once
/// ReduceLoops: the loops of reduce(), compiled once per instruction set. Everything here except
/// the tables has internal linkage and calls no function of the standard library. Otherwise the
/// linker might choose, for all callers, a copy of an inline function that uses instructions which
/// the processor lacks.

#include <cstddef>
#include <cstdint>

namespace weft {

/// The arguments of a loop. Source q begins at sources[q] + source_offset, and destination q at
/// destinations[q] + destination_offset.
struct ReduceArgs {
  std::byte* const* sources;
  std::size_t num_sources;
  std::size_t source_offset;
  std::byte* const* destinations;
  std::size_t num_destinations;
  std::size_t destination_offset;
  std::size_t count;
};
using ReduceLoop = void (*)(const ReduceArgs&);

/// A vector of 16 bytes, which every processor supports.
using Bytes16 [[gnu::vector_size(16)]] = std::uint64_t;
/// Combines 16 bytes of each source, and returns the result in a register. Loads the 16 bytes of a
/// source at once, because they may have just been stored to a line that other chips read.
using ReduceLoop16 = Bytes16 (*)(const std::byte* const* sources, std::size_t num_sources);

/// One loop per ReduceKind, for one dtype.
template <typename LoopOf>
struct ReduceKinds {
  LoopOf add, max, min;
};

/// The loops of each dtype, for one instruction set.
template <typename LoopOf>
struct ReduceDTypes {
  ReduceKinds<LoopOf> pred, i32, u32, i64, bf16, f32, f64, f16, i8, u8;
};
using ReduceTable = ReduceDTypes<ReduceLoop>;
extern const ReduceTable kPortableReduce;
extern const ReduceTable kAvx2Reduce;    ///< only on x86-64, like kAvx512Reduce
extern const ReduceTable kAvx512Reduce;  ///< needs AVX-512 F, BW, DQ and VL
extern const ReduceDTypes<ReduceLoop16> kReduce16;

}  // namespace weft
