#include <weft/spmd/program/infer_window.hpp>

#include <weft/spmd/program/infer_checks.hpp>
#include <weft/spmd/program/window.hpp>

namespace weft::infer {
namespace {

/// How many windows lie on `size` elements of the operand's dim `dim`.
std::int64_t expect_windows(const OpSignature& op, int dim, const WindowDim& window,
                            std::int64_t size) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const auto counts = [](std::int64_t number) { return number >= 1 && number <= kMost; };
  if (!counts(window.size) || !counts(window.stride) || !counts(window.base_dilation) ||
      !counts(window.dilation)) {
    reject(op,
           "dim {} has windows of size {}, stride {}, base dilation {}, dilation {}: expected 1 or "
           "more of each",
           dim, window.size, window.stride, window.base_dilation, window.dilation);
  }
  const auto pads = [](std::int64_t number) { return number >= -kMost && number <= kMost; };
  if (!pads(window.low) || !pads(window.high) || window.size > kMost / window.dilation ||
      size > kMost / window.base_dilation) {
    reject(op, "dim {} with padding {}, {} and dilations {}, {} spans more than 2^40 elements", dim,
           window.low, window.high, window.base_dilation, window.dilation);
  }
  return window_count(window, size);
}

/// The lists name each dim of the operand once.
void expect_sides(const OpSignature& op, std::string_view what, int num_dims, Dims side,
                  Dims group) {
  std::vector<std::int64_t> all(side.begin(), side.end());
  all.insert(all.end(), group.begin(), group.end());
  std::uint32_t seen = 0;
  for (const std::int64_t dim : all) {
    if (dim < 0 || dim >= num_dims || (seen >> dim & 1U) != 0) break;
    seen |= 1U << dim;
  }
  if (static_cast<int>(all.size()) != num_dims || seen != (1U << num_dims) - 1) {
    reject(op, "[{}] must name each of the {} dims of {} once", fmt::join(all, ","), num_dims,
           what);
  }
}

void expect_equal_sizes(const OpSignature& op, std::string_view what, std::int64_t lhs_dim,
                        std::int64_t rhs_dim) {
  const std::int64_t lhs = op.operands[0].shape[static_cast<int>(lhs_dim)];
  const std::int64_t rhs = op.operands[1].shape[static_cast<int>(rhs_dim)];
  if (lhs != rhs) {
    reject(op, "{} dims {} (size {}) and {} (size {}) must have one size", what, lhs_dim, lhs,
           rhs_dim, rhs);
  }
}

TensorType convolution(const OpSignature& op) {
  expect_counts(op, 2, op.attrs.size());
  const std::size_t spatial = spatial_count(op.attrs.size());
  if (spatial == 0) {
    reject(op, "{} attribute words aren't those of 1 to 3 spatial dims", op.attrs.size());
  }
  const TensorType& lhs = op.operands[0];
  const TensorType& rhs = op.operands[1];
  if (lhs.dtype != rhs.dtype || lhs.dtype == DType::pred) {
    reject(op, "both operands must have one dtype, not pred; convert first");
  }
  // The window's sizes come from rhs: its dims are looked at before they are used.
  const std::size_t side = 2 + spatial;
  const std::size_t flag = 3 * side + 5 * spatial;
  const Dims groups = op.attrs.subspan(flag + 1);
  const auto group = [&](std::size_t i) { return groups.empty() ? Dims() : groups.subspan(i, 1); };
  expect_sides(op, "lhs", lhs.shape.size(), op.attrs.first(side), group(0));
  expect_sides(op, "rhs", rhs.shape.size(), op.attrs.subspan(side, side), group(1));
  const int num_dims = static_cast<int>(side + (groups.empty() ? 0 : 1));
  expect_sides(op, "the result", num_dims, op.attrs.subspan(2 * side, side), group(2));
  if (op.attrs[flag] != 0 && op.attrs[flag] != 1) {
    reject(op, "reversed is {}; expected 0 or 1", op.attrs[flag]);
  }

  const Convolution c = convolution_of(op.attrs, rhs.shape);
  expect_equal_sizes(op, "input feature", c.lhs[1], c.rhs[0]);
  if (!c.group.empty()) expect_equal_sizes(op, "group", c.group[0], c.group[1]);
  std::array<std::int64_t, kDimCountMax> sizes{};
  const auto size = [&](std::int64_t dim) -> std::int64_t& {
    return sizes[static_cast<std::size_t>(dim)];
  };
  size(c.result[0]) = lhs.shape[static_cast<int>(c.lhs[0])];
  size(c.result[1]) = rhs.shape[static_cast<int>(c.rhs[1])];
  if (!c.group.empty()) size(c.group[2]) = lhs.shape[static_cast<int>(c.group[0])];
  for (std::size_t i = 0; i < spatial; ++i) {
    const auto dim = static_cast<int>(c.lhs[2 + i]);
    size(c.result[2 + i]) = expect_windows(op, dim, c.window[i], lhs.shape[dim]);
  }
  return {lhs.dtype, Shape(Dims(sizes).first(static_cast<std::size_t>(num_dims)))};
}

/// What a reduce_window with these attributes makes of operand 0.
TensorType reduced(const OpSignature& op) {
  const TensorType& x = op.operands[0];
  const auto num_dims = static_cast<std::size_t>(x.shape.size());
  if (op.attrs.size() != 1 + 6 * num_dims) {
    reject(op, "has {} attribute words; it takes a kind and 6 for each of the {} dims",
           op.attrs.size(), num_dims);
  }
  expect_reducible(op, op.attrs[0]);
  const WindowReduction reduction = window_reduction_of(op.attrs);
  std::vector<std::int64_t> shape;
  for (std::size_t dim = 0; dim < num_dims; ++dim) {
    const auto d = static_cast<int>(dim);
    shape.push_back(expect_windows(op, d, reduction.dims[dim], x.shape[d]));
  }
  return {x.dtype, Shape(Dims(shape))};
}

TensorType select_and_scatter(const OpSignature& op) {
  expect_counts(op, 2, op.attrs.size());
  const TensorType windows = reduced(op);
  if (static_cast<ReduceKind>(op.attrs[0]) == ReduceKind::add || windows.dtype == DType::pred) {
    reject(op, "selects by max or min, and adds numbers; got {} of {}",
           to_string(static_cast<ReduceKind>(op.attrs[0])), to_string(windows.dtype));
  }
  if (op.operands[1] != windows) {
    reject(op, "the second operand must be {}, an element for each window", windows.to_string());
  }
  return op.operands[0];
}

}  // namespace

TensorType window_op(const OpSignature& op) {
  switch (op.kind) {
    case OpKind::convolution: return convolution(op);
    case OpKind::select_and_scatter: return select_and_scatter(op);
    default: expect_counts(op, 1, op.attrs.size()); return reduced(op);
  }
}

}  // namespace weft::infer
