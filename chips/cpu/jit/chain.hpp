#pragma once
/// Translates elementwise ops to nodes of a graph, which compute the same bits as the ops' kernels.

#include <span>

#include "chips/cpu/jit/lane.hpp"
#include "spmd/program/program.hpp"

namespace weft::jit {

/// Returns whether lanes can have elements of the dtype: f32, bf16 (as f32), i32, u32, or pred (as
/// a mask).
bool has_lanes(DType dtype);

/// Appends a stream of this kind to the graph, and returns lanes with elements loaded from the
/// stream.
Lane read(Graph& graph, DType dtype, Stream::Kind kind);
/// Appends `count` dense streams of dtype f32 or bf16. Returns the sum of their elements, added in
/// the order of the streams and rounded once.
Lane read_sum(Graph& graph, DType dtype, std::size_t count);
/// Returns lanes that all have this element.
Lane fill_of(Graph& graph, DType dtype, const std::byte* element);

/// Appends the op's computation and sets `result`. Returns false if the op can't be compiled for
/// its dtypes; the graph may then have nodes whose results are never stored.
bool append(const Program& program, OpId op, std::span<const Lane> operands, Lane& result);

}  // namespace weft::jit
