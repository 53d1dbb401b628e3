#include "chips/cpu/loops/strided.hpp"

#include <algorithm>
#include <vector>

#include "chips/cpu/loops/element.hpp"
#include "chips/cpu/loops/prepares.hpp"
#include "spmd/ops/attribute_views.hpp"
#include "spmd/ops/infer.hpp"

namespace weft::kernels {
namespace {

/// One loop of a copy, with strides in elements.
struct CopyLoop {
  std::int64_t size = 1;
  std::int64_t from = 0;  ///< stride in the operand
  std::int64_t to = 0;    ///< stride in the result
};

/// Returns the loops of a copy, from outer to inner. To get as few loops as possible, drops dims of
/// size 1 and joins adjacent dims that are contiguous in both the operand and the result.
std::vector<CopyLoop> loops_of(const StridedView& view) {
  const Strides dense = dense_strides(view.shape);
  std::vector<CopyLoop> loops;
  for (int dim = 0; dim < view.shape.size(); ++dim) {
    const auto d = static_cast<std::size_t>(dim);
    const CopyLoop loop{view.shape[dim], view.strides[d], dense[d]};
    if (loop.size == 1) continue;
    if (!loops.empty() && loops.back().from == loop.from * loop.size) {
      loops.back() = {loops.back().size * loop.size, loop.from, loop.to};
    } else {
      loops.push_back(loop);
    }
  }
  if (loops.empty()) loops.push_back({1, 1, 1});
  return loops;
}

/// Calls body(from, to) with the offsets of every iteration of the loops, in row-major order.
template <typename Body>
void for_each_turn(std::span<const CopyLoop> loops, std::int64_t from, std::int64_t to, Body body) {
  std::array<std::int64_t, kDimCountMax> index{};
  for (;;) {
    body(from, to);
    std::size_t l = loops.size();
    for (;; --l) {
      if (l == 0) return;
      const CopyLoop& loop = loops[l - 1];
      from += loop.from;
      to += loop.to;
      if (++index[l - 1] < loop.size) break;
      from -= loop.from * loop.size;
      to -= loop.to * loop.size;
      index[l - 1] = 0;
    }
  }
}

/// Transposes two loops in tiles that fit the first-level cache. `rows` is contiguous in the
/// operand, `columns` in the result. The function isn't inlined and takes the loops by value,
/// because inlined in copy_loops() it takes 1.5 to 2 times as long.
template <typename T>
[[gnu::noinline]] void transpose_tiles(const T* operand, T* result, CopyLoop rows,
                                       CopyLoop columns) {
  constexpr std::int64_t kTile = 16;
  for (std::int64_t i0 = 0; i0 < rows.size; i0 += kTile) {
    const std::int64_t i1 = std::min(i0 + kTile, rows.size);
    for (std::int64_t j0 = 0; j0 < columns.size; j0 += kTile) {
      const std::int64_t j1 = std::min(j0 + kTile, columns.size);
      for (std::int64_t i = i0; i < i1; ++i) {
        for (std::int64_t j = j0; j < j1; ++j) {
          result[i * rows.to + j] = operand[i + j * columns.from];
        }
      }
    }
  }
}

/// The ways to copy the innermost loop. `transpose` copies it together with the loop that has
/// stride 1 in the operand.
enum class Inner { run, repeat, transpose, gather };

template <typename T>
Kernel copy_loops(std::vector<CopyLoop> loops, std::int64_t offset) {
  const CopyLoop inner = loops.back();
  loops.pop_back();
  Inner kind = inner.from == 1 ? Inner::run : inner.from == 0 ? Inner::repeat : Inner::gather;
  CopyLoop rows;
  const auto along = std::ranges::find(loops, 1, &CopyLoop::from);
  if (kind == Inner::gather && along != loops.end()) {
    kind = Inner::transpose;
    rows = *along;
    loops.erase(along);
  }
  return {[loops, inner, rows, kind, offset](const KernelArgs& args) {
    const T* operand = as<T>(args.operands[0]);
    T* result = as<T>(args.result);
    for_each_turn(loops, offset, 0, [&](std::int64_t from, std::int64_t to) {
      const T* x = operand + from;
      T* y = result + to;
      switch (kind) {
        case Inner::run: std::copy_n(x, inner.size, y); break;
        case Inner::repeat: std::fill_n(y, inner.size, *x); break;
        case Inner::transpose: transpose_tiles(x, y, rows, inner); break;
        case Inner::gather:
          for (std::int64_t i = 0; i < inner.size; ++i) y[i] = x[i * inner.from];
          break;
      }
    });
  }};
}

}  // namespace

Kernel copy_view(const StridedView& view, DType dtype) {
  if (view.shape.num_elements() == 0) return {[](const KernelArgs&) {}};
  return visit_dtype(dtype, [&]<typename T>(std::type_identity<T>) {
    return copy_loops<T>(loops_of(view), view.offset);
  });
}

namespace {

const TensorType& operand_of(const Program& program, OpId op) {
  return program.type(program.op_operands(op)[0]);
}

Kernel transpose(const Program& program, OpId op) {
  const TensorType& result = program.type(program.result(op));
  const Strides strides = dense_strides(operand_of(program, op).shape);
  StridedView view{result.shape};
  const auto perm = program.op_attrs(op);
  for (std::size_t i = 0; i < perm.size(); ++i) {
    view.strides[i] = strides[static_cast<std::size_t>(perm[i])];
  }
  return copy_view(view, result.dtype);
}

Kernel broadcast(const Program& program, OpId op) {
  const TensorType& result = program.type(program.result(op));
  const Shape& from = operand_of(program, op).shape;
  const Strides strides = dense_strides(from);
  StridedView view{result.shape};
  const auto dims = program.op_attrs(op);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const bool expands = from[static_cast<int>(i)] == 1;
    view.strides[static_cast<std::size_t>(dims[i])] = expands ? 0 : strides[i];
  }
  return copy_view(view, result.dtype);
}

Kernel slice(const Program& program, OpId op) {
  const TensorType& result = program.type(program.result(op));
  const Strides strides = dense_strides(operand_of(program, op).shape);
  StridedView view{result.shape};
  const auto [start, limit, stride] = triples(program.op_attrs(op));
  for (std::size_t dim = 0; dim < start.size(); ++dim) {
    view.strides[dim] = strides[dim] * stride[dim];
    view.offset += strides[dim] * start[dim];
  }
  return copy_view(view, result.dtype);
}

Kernel reverse(const Program& program, OpId op) {
  const TensorType& result = program.type(program.result(op));
  StridedView view{result.shape, dense_strides(result.shape)};
  for (const std::int64_t dim : program.op_attrs(op)) {
    std::int64_t& stride = view.strides[static_cast<std::size_t>(dim)];
    view.offset += (result.shape[static_cast<int>(dim)] - 1) * stride;
    stride = -stride;
  }
  return copy_view(view, result.dtype);
}

Kernel all_slice(const Program& program, OpId op, const ChipContext& chip) {
  const TensorType& result = program.type(program.result(op));
  const auto attrs = program.op_attrs(op);
  const auto dim = static_cast<int>(attrs[1]);
  const auto atoms = AtomList::from_bits(static_cast<std::uint64_t>(attrs[0]));
  StridedView view{result.shape, dense_strides(operand_of(program, op).shape)};
  view.offset = chip.mesh.index_in(chip.position, atoms) * result.shape[dim] *
                view.strides[static_cast<std::size_t>(dim)];
  return copy_view(view, result.dtype);
}

/// Makes a kernel that copies the operand's elements to the result in the same order.
Kernel same_order(const Program& program, OpId op) {
  const TensorType& result = program.type(program.result(op));
  return copy_view({result.shape, dense_strides(result.shape)}, result.dtype);
}

}  // namespace

constexpr Prepare prepares::transpose = prepare_by<kernels::transpose>;
constexpr Prepare prepares::broadcast_in_dim = prepare_by<broadcast>;
constexpr Prepare prepares::slice = prepare_by<kernels::slice>;
constexpr Prepare prepares::reverse = prepare_by<kernels::reverse>;
constexpr Prepare prepares::all_slice = prepare_by<kernels::all_slice>;
constexpr Prepare prepares::reshape = prepare_by<same_order>;
constexpr Prepare prepares::copy = prepare_by<same_order>;
constexpr Prepare prepares::optimization_barrier = prepare_by<same_order>;
constexpr Prepare prepares::stop_gradient = prepare_by<same_order>;
constexpr Prepare prepares::custom_gradient = prepare_by<same_order>;
constexpr Prepare prepares::vary = prepare_by<same_order>;
constexpr Prepare prepares::sharding_constraint = prepare_by<same_order>;

}  // namespace weft::kernels
