#pragma once
/// Translates elementwise ops to nodes of a graph. The results have the same bits as those of the
/// ops' kernels.

#include <span>

#include "chips/cpu/jit/lane.hpp"
#include "spmd/program/program.hpp"

namespace weft::jit {

/// Returns whether lanes can hold elements of the dtype. They can if it is f32, bf16 (held as f32),
/// i32, u32 or pred (held as a mask).
bool has_lanes(DType dtype);

/// Appends a stream of this kind to the graph, and returns the elements loaded from it.
Lane read(Graph& graph, DType dtype, Stream::Kind kind);
/// Appends `count` dense streams of dtype f32 or bf16. Returns the sum of their elements, added in
/// the order of the streams and rounded once.
Lane read_sum(Graph& graph, DType dtype, std::size_t count);
/// Returns lanes that all have the value of this element.
Lane fill_of(Graph& graph, DType dtype, const std::byte* element);

/// Appends the op's computation and sets `result`. Returns false if the op isn't compiled for its
/// dtypes; the graph may then have nodes that nothing stores.
bool append(const Program& program, OpId op, std::span<const Lane> operands, Lane& result);

}  // namespace weft::jit
