#pragma once
/// The loops of reduce(), compiled once per instruction set. Everything here except the table has
/// internal linkage, and no standard library function is called. Otherwise the linker could keep
/// the copy of an inline function whose instructions a processor doesn't have.

#include <cstddef>
#include <cstdint>

namespace weft {

/// Source q begins at sources[q] + source_offset. The destinations have the same form.
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

/// A vector type that every processor has.
using Bytes16 [[gnu::vector_size(16)]] = std::uint64_t;
/// Combines 16 bytes of each source. All of them stay in registers, because a source may have just
/// been stored to a line that other chips read.
using ReduceLoop16 = Bytes16 (*)(const std::byte* const* sources, std::size_t num_sources);

/// Indexed by ReduceKind, for one dtype.
template <typename LoopOf>
struct ReduceKinds {
  LoopOf add, max, min;
};

/// Indexed by dtype, for one instruction set.
template <typename LoopOf>
struct ReduceDTypes {
  ReduceKinds<LoopOf> pred, i32, u32, i64, bf16, f32, f64, f16, i8, u8;
};
using ReduceTable = ReduceDTypes<ReduceLoop>;
extern const ReduceTable kPortableReduce;
extern const ReduceTable kAvx2Reduce;    ///< x86-64 only, as is the next one
extern const ReduceTable kAvx512Reduce;  ///< needs F, BW, DQ and VL
extern const ReduceDTypes<ReduceLoop16> kReduce16;

}  // namespace weft
