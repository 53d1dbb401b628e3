// Lowers dot_general, convolutions and reductions.

#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "spmd/ops/elements.hpp"
#include "spmd/program/window.hpp"
#include "spmd/stablehlo/lowering.hpp"

namespace weft {
namespace {

/// Returns the attribute that makes compilers multiply f32 exactly as f32. By default, they may
/// round the factors to fewer bits.
std::string precision_of(const HloType& factors) {
  if (factors.element != "f32") return "";
  return ", precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]";
}

std::string numbers_of(Words dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

HloValue plain_product(const HloOp& op, const HloValue& lhs, const HloValue& rhs) {
  const DotDimsView dims = dot_dims(op.attrs());
  return op.write().op(
      "dot_general", {lhs, rhs}, op.type,
      fmt::format("dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = {}, "
                  "rhs_batching_dimensions = {}, lhs_contracting_dimensions = {}, "
                  "rhs_contracting_dimensions = {}>{}",
                  numbers_of(dims.lhs_batch), numbers_of(dims.rhs_batch),
                  numbers_of(dims.lhs_contracting), numbers_of(dims.rhs_contracting),
                  precision_of(lhs.type)));
}

/// Returns operand `side`, broadcast to the dims (batch, free of lhs, free of rhs, contracting).
HloValue spread_factor(const HloOp& op, std::size_t side, const HloType& all) {
  const DotDimsView view = dot_dims(op.attrs());
  const Words batch = side == 0 ? view.lhs_batch : view.rhs_batch;
  const Words contracting = side == 0 ? view.lhs_contracting : view.rhs_contracting;
  const HloType& type = op.operand_type(side);
  const DimList free = free_dims(type.rank(), batch, contracting);
  const auto others = op.type.dims.size() - batch.size() - free.size();
  // The transpose puts the operand's dims in the order of the product's dims. So `places` is
  // ascending, as broadcast_in_dim requires.
  HloDims order(batch.begin(), batch.end());
  order.insert(order.end(), free.begin(), free.end());
  order.insert(order.end(), contracting.begin(), contracting.end());
  HloDims places;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool skips_lhs = side == 1 && i >= batch.size();
    const bool skips_rhs = side == 0 && i >= batch.size() + free.size();
    places.push_back(static_cast<std::int64_t>(i + (skips_lhs || skips_rhs ? others : 0)));
  }
  HloWriter& w = op.write();
  const HloValue x = w.convert(op.operand(side), all.element);
  return w.broadcast(w.transpose(x, order), all, places);
}

/// Lowers dot_general to a sum of elementwise products. A product is 0 if its factor on the side
/// whose zeros are skipped is 0.
HloValue product_of_pairs(const HloOp& op, SkipZeros skip_zeros) {
  HloWriter& w = op.write();
  const DotDimsView view = dot_dims(op.attrs());
  HloType all = op.type.with(op.type.is_half() ? std::string_view("f32") : op.type.element);
  HloDims summed;
  for (const std::int64_t dim : view.lhs_contracting) {
    summed.push_back(all.rank());
    all.dims.push_back(op.operand_type(0).dims[static_cast<std::size_t>(dim)]);
  }
  const HloValue lhs = spread_factor(op, 0, all);
  const HloValue rhs = spread_factor(op, 1, all);
  const HloValue zero = w.splat(all, 0);
  const HloValue is_zero = w.compare("EQ", {skip_zeros == SkipZeros::lhs ? lhs : rhs, zero});
  const HloValue terms = w.select({is_zero, zero, w.binary("multiply", {lhs, rhs})});
  return w.convert(w.reduce("add", terms, 0, summed), op.type.element);
}

/// Lowers dot_general. Skipping the products of zeros changes the result only if an element on the
/// other side isn't finite. This is rare, so the text has a fast branch and an exact branch.
HloValue lower_dot_general(const HloOp& op) {
  const SkipZeros skip_zeros = dot_dims(op.attrs()).skip_zeros;
  const bool skips = skip_zeros == SkipZeros::lhs || skip_zeros == SkipZeros::rhs;
  if (!skips || !op.type.is_floating()) return plain_product(op, op.operand(0), op.operand(1));
  HloWriter& w = op.write();
  const HloValue& other = op.operand(skip_zeros == SkipZeros::lhs ? 1 : 0);
  const DimList dims = consecutive_dims(0, other.type.rank());
  const HloValue finite = w.op("is_finite", {other}, other.type.with("i1"));
  const HloValue all_finite = w.reduce("and", finite, 1, dims);
  const std::string plain = w.region({}, [&](const HloWriter::Values&) {
    return HloWriter::Values{plain_product(op, op.operand(0), op.operand(1))};
  });
  const std::string exact = w.region({}, [&](const HloWriter::Values&) {
    return HloWriter::Values{product_of_pairs(op, skip_zeros)};
  });
  return w.op("if", {all_finite}, op.type, "", {plain, exact});
}

HloValue lower_reduce(const HloOp& op) {
  HloWriter& w = op.write();
  const auto kind = static_cast<ReduceKind>(op.attrs()[0]);
  const bool adds_halves = kind == ReduceKind::add && op.operand_type(0).is_half();
  const HloValue x = adds_halves ? w.convert(op.operand(0), "f32") : op.operand(0);
  const DType dtype = op.operand_dtype(0);
  const HloValue result =
      w.reduce(combiner_of(kind, dtype), x, neutral(kind, dtype), op.attrs().subspan(1));
  return w.convert(result, op.type.element);
}

/// Returns the dims of one side of a convolution in StableHLO's notation, such as "[b, f, 0, 1]".
/// `dims` lists the dim named `first`, the dim named `second`, and the spatial dims.
std::string side_text(std::span<const std::int64_t> dims, char first, char second) {
  std::vector<std::string> names(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) {
    names[static_cast<std::size_t>(dims[i])] =
        i < 2 ? std::string(1, i == 0 ? first : second) : std::to_string(i - 2);
  }
  return fmt::format("[{}]", fmt::join(names, ", "));
}

/// Transposes x to the dims in `side`, with the dim `group` before the entry `feature`, and merges
/// these two dims. StableHLO has no dim for groups: they are a part of the features.
HloValue joined_group(HloWriter& w, const HloValue& x, const HloDims& side, std::int64_t group,
                      std::size_t feature) {
  HloDims order = side;
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(feature), group);
  HloDims dims;
  for (const std::int64_t dim : order) dims.push_back(x.type.dims[static_cast<std::size_t>(dim)]);
  const std::int64_t groups = dims[feature];
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(feature));
  dims[feature] *= groups;
  return w.reshape(w.transpose(x, order), dims);
}

/// The operands and result type of a convolution whose group dim is merged into the features.
struct MergedConvolution {
  HloValue lhs;
  HloValue rhs;
  HloType result;
  std::int64_t groups = 1;
  HloDims order{};  ///< the result dims of the op before the merge; empty: no group
};

/// Merges the group dim, if there is one, and then sets the lists in `c` to the new dims.
MergedConvolution merge_group(const HloOp& op, Convolution& c) {
  MergedConvolution merged{op.operand(0), op.operand(1), op.type};
  if (c.group.empty()) return merged;
  HloWriter& w = op.write();
  const auto size = [&](std::int64_t dim) { return op.type.dims[static_cast<std::size_t>(dim)]; };
  merged.lhs = joined_group(w, merged.lhs, c.lhs, c.group[0], 1);
  merged.rhs = joined_group(w, merged.rhs, c.rhs, c.group[1], 1);
  merged.groups = size(c.group[2]);
  merged.order = c.result;
  merged.order.insert(merged.order.begin() + 1, c.group[2]);
  merged.result.dims.clear();
  for (const std::int64_t dim : c.result) merged.result.dims.push_back(size(dim));
  merged.result.dims[1] *= merged.groups;
  for (HloDims* side : {&c.lhs, &c.rhs, &c.result}) std::iota(side->begin(), side->end(), 0);
  return merged;
}

std::string window_text(const Convolution& c) {
  HloDims strides, base, dilation;
  std::vector<HloDims> padding;
  for (const WindowDim& dim : c.window) {
    strides.push_back(dim.stride);
    base.push_back(dim.base_dilation);
    dilation.push_back(dim.dilation);
    padding.push_back({dim.low, dim.high});
  }
  const std::vector<std::string_view> reversal(c.window.size(), c.reversed ? "true" : "false");
  return fmt::format(
      "window_strides = {}, padding = {}, lhs_dilation = {}, rhs_dilation = {}, "
      "window_reversal = array<i1: {}>",
      hlo_array(strides), hlo_rows(padding), hlo_array(base), hlo_array(dilation),
      fmt::join(reversal, ", "));
}

HloValue lower_convolution(const HloOp& op) {
  if (op.operand_type(0).num_elements() == 0 || op.operand_type(1).num_elements() == 0 ||
      op.type.num_elements() == 0) {
    return op.zeros();
  }
  HloWriter& w = op.write();
  Convolution c = convolution_of(op.attrs(), op.program.shape(op.program.op_operands(op.op)[1]));
  const MergedConvolution merged = merge_group(op, c);
  const HloValue result = w.op(
      "convolution", {merged.lhs, merged.rhs}, merged.result,
      fmt::format("batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<{}x{}->{}>, "
                  "feature_group_count = {} : i64, {}{}",
                  side_text(c.lhs, 'b', 'f'), side_text(c.rhs, 'i', 'o'),
                  side_text(c.result, 'b', 'f'), merged.groups, window_text(c),
                  precision_of(merged.lhs.type)));
  if (merged.order.empty()) return result;
  HloDims split;
  for (const std::int64_t dim : merged.order) {
    split.push_back(op.type.dims[static_cast<std::size_t>(dim)]);
  }
  const DimList back = inverse_permutation(merged.order);
  return w.transpose(w.reshape(result, split), back);
}

}  // namespace

std::string_view combiner_of(ReduceKind kind, DType dtype) {
  const bool is_pred = dtype == DType::pred;
  switch (kind) {
    case ReduceKind::add: return "add";
    case ReduceKind::max: return is_pred ? "or" : "maximum";
    case ReduceKind::min: return is_pred ? "and" : "minimum";
  }
  return "";
}

constexpr Lowering lowerings::dot_general = lower_dot_general;
constexpr Lowering lowerings::reduce = lower_reduce;
constexpr Lowering lowerings::convolution = lower_convolution;

}  // namespace weft
