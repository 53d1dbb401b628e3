#include <weft/spmd/program/evaluate_window.hpp>

#include <cmath>

#include <weft/spmd/program/window_axes.hpp>

namespace weft {
namespace {

using Dims = std::span<const std::int64_t>;

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// The elements along one dim.
std::vector<std::int64_t> along(const Shape& shape, std::int64_t dim) {
  const std::int64_t size = shape[static_cast<int>(dim)];
  const std::int64_t stride = row_major_strides(shape)[index(dim)];
  return offsets(Dims(&size, 1), Dims(&stride, 1));
}

Elements convolve(const Elements& lhs, const Elements& rhs, const Shape& lhs_shape,
                  const Shape& rhs_shape, const Shape& shape, const Convolution& c) {
  const std::vector<Meeting> all = meetings(window_axes(c, lhs_shape, rhs_shape, shape));
  const auto groups = [&](const Shape& of, std::size_t side) {
    return c.group.empty() ? std::vector<std::int64_t>{0} : along(of, c.group[side]);
  };
  const auto lhs_groups = groups(lhs_shape, 0);
  const auto rhs_groups = groups(rhs_shape, 1);
  const auto result_groups = groups(shape, 2);
  const auto lhs_batch = along(lhs_shape, c.lhs[0]);
  const auto result_batch = along(shape, c.result[0]);
  const auto rhs_output = along(rhs_shape, c.rhs[1]);
  const auto result_output = along(shape, c.result[1]);
  const auto lhs_input = along(lhs_shape, c.lhs[1]);
  const auto rhs_input = along(rhs_shape, c.rhs[0]);

  Elements result(index(shape.num_elements()), 0);
  for (std::size_t g = 0; g < result_groups.size(); ++g) {
    for (std::size_t b = 0; b < result_batch.size(); ++b) {
      for (std::size_t o = 0; o < result_output.size(); ++o) {
        for (std::size_t i = 0; i < lhs_input.size(); ++i) {
          const std::int64_t to = result_groups[g] + result_batch[b] + result_output[o];
          const std::int64_t x = lhs_groups[g] + lhs_batch[b] + lhs_input[i];
          const std::int64_t w = rhs_groups[g] + rhs_output[o] + rhs_input[i];
          for (const Meeting& m : all) {
            result[index(to + m.window)] += lhs[index(x + m.operand)] * rhs[index(w + m.place)];
          }
        }
      }
    }
  }
  return result;
}

/// A NaN is the extremum.
bool beats(ReduceKind kind, double x, double best) {
  if (std::isnan(best)) return false;
  return std::isnan(x) || (kind == ReduceKind::max ? x > best : x < best);
}

Elements select_and_scatter(const Elements& x, const Elements& y, std::span<const Meeting> all,
                            ReduceKind kind) {
  std::vector<std::int64_t> best(y.size(), -1);
  for (const Meeting& m : all) {
    std::int64_t& place = best[index(m.window)];
    if (place < 0 || beats(kind, x[index(m.operand)], x[index(place)])) place = m.operand;
  }
  Elements result(x.size(), 0);
  for (std::size_t window = 0; window < y.size(); ++window) {
    if (best[window] >= 0) result[index(best[window])] += y[window];
  }
  return result;
}

}  // namespace

Elements evaluate_window(const Program& program, OpId op,
                         std::span<const Elements* const> operands) {
  const auto ids = program.op_operands(op);
  const TensorType& type = program.type(program.result(op));
  const TensorType& x = program.type(ids[0]);
  if (program.kind(op) == OpKind::convolution) {
    const Shape& rhs = program.shape(ids[1]);
    return convolve(*operands[0], *operands[1], x.shape, rhs, type.shape,
                    convolution_of(program.op_attrs(op), rhs));
  }
  const WindowReduction reduction = window_reduction_of(program.op_attrs(op));
  if (program.kind(op) == OpKind::select_and_scatter) {
    const auto all = meetings(window_axes(reduction, x.shape, program.shape(ids[1])));
    return select_and_scatter(*operands[0], *operands[1], all, reduction.kind);
  }
  Elements result(index(type.num_elements()), neutral(reduction.kind, type.dtype));
  for (const Meeting& m : meetings(window_axes(reduction, x.shape, type.shape))) {
    double& total = result[index(m.window)];
    total = combine(reduction.kind, total, (*operands[0])[index(m.operand)]);
  }
  return result;
}

}  // namespace weft
