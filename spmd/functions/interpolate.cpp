#include <weft/ops/interpolate.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>
#include <weft/ops/elementwise.hpp>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

/// Describes how one dim is resized.
struct Resize {
  int dim;
  std::int64_t from;
  std::int64_t to;
  double scale;  ///< number of elements of x per element of the result
};

/// Returns a constant tensor with these elements.
template <typename T>
Tensor listed(Call& call, const std::vector<T>& elements, DType dtype) {
  const TensorType type{dtype, {static_cast<std::int64_t>(elements.size())}};
  return call.result(call->constant(std::as_bytes(std::span(elements)), type));
}

/// Returns x[.., places[i], ..] for each i.
Tensor taken(Call& call, const Tensor& x, int dim, const std::vector<std::int32_t>& places) {
  const ValueId index = call.value(listed(call, places, DType::i32));
  const Tensor turned = transpose(x, 0, dim);
  return transpose(call.result(call->gather(call.value(turned), index)), 0, dim);
}

/// Returns x with each element repeated `count` times along `dim`.
Tensor repeated(const Tensor& x, int dim, std::int64_t count) {
  Dims sizes(x.shape().begin(), x.shape().end());
  sizes.insert(sizes.begin() + dim + 1, 1);
  const Tensor split = reshape(x, Shape(sizes));
  sizes[static_cast<std::size_t>(dim) + 1] = count;
  const Tensor copies = broadcast_to(split, Shape(sizes));
  sizes.erase(sizes.begin() + dim + 1);
  sizes[static_cast<std::size_t>(dim)] *= count;
  return reshape(copies, Shape(sizes));
}

/// Resizes by taking the nearest element. `Real` is the type in which torch computes the positions
/// of elements for x's dtype.
template <typename Real>
Tensor nearest(Call& call, const Tensor& x, const Resize& how) {
  if (how.to % how.from == 0 && how.scale * double(how.to / how.from) == 1) {
    return repeated(x, how.dim, how.to / how.from);
  }
  const auto scale = static_cast<Real>(how.scale);
  std::vector<std::int32_t> places;
  for (std::int64_t i = 0; i < how.to; ++i) {
    const auto place = static_cast<std::int64_t>(std::floor(static_cast<Real>(i) * scale));
    places.push_back(static_cast<std::int32_t>(std::min(place, how.from - 1)));
  }
  return taken(call, x, how.dim, places);
}

template <typename Real>
Tensor linear_between(Call& call, const Tensor& x, const Resize& how, bool align_corners) {
  const auto scale = static_cast<Real>(how.scale);
  std::vector<std::int32_t> before;
  std::vector<std::int32_t> behind;
  std::vector<double> weights;
  for (std::int64_t i = 0; i < how.to; ++i) {
    const auto at = static_cast<Real>(i);
    const Real half = Real(1) / 2;
    const Real place = align_corners ? scale * at : std::max(scale * (at + half) - half, Real(0));
    const auto first = std::min(static_cast<std::int64_t>(place), how.from - 1);
    before.push_back(static_cast<std::int32_t>(first));
    behind.push_back(static_cast<std::int32_t>(std::min(first + 1, how.from - 1)));
    weights.push_back(static_cast<double>(place - static_cast<Real>(first)));
  }
  Dims sizes(static_cast<std::size_t>(x.shape().size()), 1);
  sizes[static_cast<std::size_t>(how.dim)] = how.to;
  const Tensor weight =
      cast(reshape(listed(call, weights, DType::f64), Shape(sizes)), x.type().dtype);
  return taken(call, x, how.dim, before) * (1 - weight) + taken(call, x, how.dim, behind) * weight;
}

std::vector<Resize> resizes(const Call& call, const Operand& x, const InterpolateOptions& options) {
  const TensorType& type = call.type(x);
  const int spatial = type.shape.size() - 2;
  if (spatial < 1 || spatial > 3 || !is_floating(type.dtype)) {
    call.refuse("{}: expected a floating [N,C,spatial..] with one to three spatial dims",
                call.node(x)->label());
  }
  const auto& [size, factor, mode, align_corners] = options;
  const std::size_t given = size.size() + factor.size();
  if ((!size.empty() && !factor.empty()) || (given != 1 && given != std::size_t(spatial))) {
    call.refuse(
        "size = {{{}}}, scale_factor = {{{}}}: expected only one of the two, with one number or {} "
        "numbers",
        fmt::join(size, ", "), fmt::join(factor, ", "), spatial);
  }
  if (align_corners && mode != Interpolation::linear) {
    call.refuse("align_corners is set, but works only with mode = Interpolation::linear");
  }
  std::vector<Resize> result;
  for (int i = 0; i < spatial; ++i) {
    const std::size_t at = given == 1 ? 0 : static_cast<std::size_t>(i);
    const std::int64_t from = type.shape[i + 2];
    const double wanted = size.empty() ? std::floor(double(from) * factor[at]) : double(size[at]);
    if (!(wanted >= 1 && wanted <= 0x1p31) || from == 0) {
      call.refuse(
          "size = {{{}}}, scale_factor = {{{}}} for {}: expected 1 element or more in dim {}",
          fmt::join(size, ", "), fmt::join(factor, ", "), call.node(x)->label(), i + 2);
    }
    const auto to = static_cast<std::int64_t>(wanted);
    double scale = size.empty() ? 1 / factor[at] : double(from) / double(to);
    if (align_corners) scale = to > 1 ? double(from - 1) / double(to - 1) : 0;
    result.push_back({i + 2, from, to, scale});
  }
  return result;
}

template <typename Real>
Tensor resized(Call& call, const Operand& x, const InterpolateOptions& options) {
  Tensor result = x.tensor();
  for (const Resize& how : resizes(call, x, options)) {
    if (how.from == how.to && how.scale == 1) continue;
    result = options.mode == Interpolation::nearest
                 ? nearest<Real>(call, result, how)
                 : linear_between<Real>(call, result, how, options.align_corners);
  }
  return result;
}

}  // namespace

Tensor interpolate(Operand x, const InterpolateOptions& options) {
  Call call("interpolate", x.loc());
  return call.type(x).dtype == DType::f64 ? resized<double>(call, x, options)
                                          : resized<float>(call, x, options);
}

}  // namespace weft
