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

/// Indexed by ReduceKind, for one dtype.
struct ReduceLoops {
  ReduceLoop add, max, min;
};

/// Indexed by dtype, for one instruction set.
struct ReduceTable {
  ReduceLoops pred, i32, u32, i64, bf16, f32, f64, f16, i8, u8;
};
extern const ReduceTable kPortableReduce;
extern const ReduceTable kAvx2Reduce;    ///< x86-64 only, as the next
extern const ReduceTable kAvx512Reduce;  ///< F, BW, DQ and VL

}  // namespace weft
