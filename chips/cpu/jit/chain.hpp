#pragma once
/// Elementwise ops as nodes of a graph. The results have the same bits as those of the ops'
/// kernels.

#include <span>

#include "chips/cpu/jit/lane.hpp"
#include "spmd/program/program.hpp"

namespace weft::jit {

/// Whether lanes can hold elements of the dtype: f32 itself, bf16 as f32, i32, u32, pred as a mask.
bool has_lanes(DType dtype);

/// Returns the elements of a stream that the graph loads. Appends the stream. `kind` is as in
/// Stream.
Lane read(Graph& graph, DType dtype, Stream::Kind kind);
/// Returns the sum of `count` dense streams, added in their order and rounded once. Appends the
/// streams. The dtype is f32 or bf16.
Lane read_sum(Graph& graph, DType dtype, std::size_t count);
/// Lanes that all have this element.
Lane fill_of(Graph& graph, DType dtype, const std::byte* element);

/// Appends the op's computation. Returns false if the op isn't compiled for its dtypes; the graph
/// may then have nodes that nothing stores.
bool append(const Program& program, OpId op, std::span<const Lane> operands, Lane& result);

}  // namespace weft::jit
