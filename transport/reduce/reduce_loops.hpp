#pragma once
/// The loops of reduce(), compiled once per instruction set. Everything here but the table has
/// internal linkage, and no standard library function is called: the linker could otherwise keep
/// the copy of an inline function with instructions that a processor doesn't have.

#include <cstddef>
#include <cstdint>

namespace weft {

/// sources[q] + source_offset is where source q begins; the same for the destinations.
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

/// A vector of every processor.
using Bytes16 [[gnu::vector_size(16)]] = std::uint64_t;
/// Combines 16 bytes of each source, all of which stay in registers: a source may be what was just
/// stored to a line that others read.
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
extern const ReduceTable kAvx2Reduce;    ///< x86-64 only, as the next
extern const ReduceTable kAvx512Reduce;  ///< F, BW, DQ and VL
extern const ReduceDTypes<ReduceLoop16> kReduce16;

}  // namespace weft
