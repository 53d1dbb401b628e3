#pragma once
/// Elementwise ops as nodes of a graph, with the bits that their kernels give.

#include <span>

#include "chips/cpu/jit/lane.hpp"
#include "spmd/program/program.hpp"

namespace weft::jit {

/// Whether lanes hold elements of the dtype: f32 as it is, bf16 as f32, i32, u32, pred as a mask.
bool has_lanes(DType dtype);

/// The elements of a stream that the graph loads. Appends the stream; `kind` as in Stream.
Lane read(Graph& graph, DType dtype, Stream::Kind kind);
/// The sum of the elements of as many dense streams, added in their order and rounded once. Appends
/// the streams. f32 or bf16.
Lane read_sum(Graph& graph, DType dtype, std::size_t count);
/// Lanes that all have this element.
Lane fill_of(Graph& graph, DType dtype, const std::byte* element);

/// Appends what the op computes. False, and the graph may have nodes that nothing stores, if the op
/// isn't compiled for its dtypes.
bool append(const Program& program, OpId op, std::span<const Lane> operands, Lane& result);

}  // namespace weft::jit
