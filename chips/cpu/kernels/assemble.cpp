#include "chips/cpu/kernels/assemble.hpp"

#include <algorithm>
#include <vector>

#include "chips/cpu/loops/element.hpp"
#include "chips/cpu/loops/prepares.hpp"
#include "spmd/ops/attribute_views.hpp"
#include "spmd/ops/infer.hpp"

namespace weft::kernels {
namespace {

/// Copies a dense operand of shape `to.shape` to the elements of the result that the view `to`
/// describes.
template <typename T>
void put(const T* operand, T* result, const StridedView& to) {
  const int num_dims = to.shape.size();
  if (num_dims == 0) {
    result[to.offset] = *operand;
    return;
  }
  const auto inner = static_cast<std::size_t>(num_dims - 1);
  const std::int64_t size = to.shape[num_dims - 1];
  const std::int64_t runs = to.shape.num_elements() / std::max<std::int64_t>(size, 1);
  std::array<std::int64_t, kDimCountMax> index{};
  std::int64_t place = to.offset;
  for (std::int64_t run = 0; run < runs; ++run, operand += size) {
    if (to.strides[inner] == 1) {
      std::copy_n(operand, size, result + place);
    } else {
      for (std::int64_t i = 0; i < size; ++i) result[place + i * to.strides[inner]] = operand[i];
    }
    for (std::size_t dim = inner; dim-- > 0;) {
      place += to.strides[dim];
      if (++index[dim] < to.shape[static_cast<int>(dim)]) break;
      place -= to.strides[dim] * index[dim];
      index[dim] = 0;
    }
  }
}

std::vector<StridedView> parts_of(const Program& program, OpId op) {
  const Shape& whole = program.shape(program.result(op));
  const auto operands = program.op_operands(op);
  const auto attrs = program.op_attrs(op);
  std::vector<StridedView> parts;
  if (program.kind(op) == OpKind::pad) {
    const auto [low, high, interior] = triples(attrs);
    StridedView& part = parts.emplace_back(program.shape(operands[0]), dense_strides(whole));
    for (std::size_t dim = 0; dim < low.size(); ++dim) {
      part.offset += low[dim] * part.strides[dim];
      part.strides[dim] *= interior[dim] + 1;
    }
    return parts;
  }
  const auto dim = static_cast<std::size_t>(attrs[0]);
  std::int64_t offset = 0;
  for (const ValueId operand : operands) {
    parts.push_back({program.shape(operand), dense_strides(whole), offset});
    offset += parts.back().shape[static_cast<int>(dim)] * parts.back().strides[dim];
  }
  return parts;
}

}  // namespace

Kernel put_view(const StridedView& view, DType dtype) {
  return visit_dtype(dtype, [&]<typename T>(std::type_identity<T>) {
    return Kernel{
        [view](const KernelArgs& args) { put(as<T>(args.operands[0]), as<T>(args.result), view); }};
  });
}

Kernel assemble(const Program& program, OpId op) {
  const TensorType& type = program.type(program.result(op));
  const bool pads = program.kind(op) == OpKind::pad;
  return visit_dtype(type.dtype, [&]<typename T>(std::type_identity<T>) {
    return Kernel{
        [parts = parts_of(program, op), count = type.num_elements(), pads](const KernelArgs& args) {
          T* result = as<T>(args.result);
          if (pads) std::fill_n(result, count, *as<T>(args.operands[1]));
          for (std::size_t part = 0; part < parts.size(); ++part) {
            put(as<T>(args.operands[part]), result, parts[part]);
          }
        }};
  });
}

constexpr Prepare prepares::pad = prepare_by<assemble>;
constexpr Prepare prepares::concatenate = prepare_by<assemble>;

}  // namespace weft::kernels
