#include <weft/actors/device/kernels/leaf.hpp>

#include <algorithm>
#include <vector>

#include <weft/actors/device/kernels/arithmetic.hpp>
#include <weft/actors/device/kernels/element.hpp>

namespace weft::kernels {
namespace {

Kernel constant(const Program& program, OpId op) {
  const TensorType& type = program.type(program.result(op));
  const auto attrs = program.op_attrs(op);
  const auto elements =
      std::span(program.const_pool)
          .subspan(static_cast<std::size_t>(attrs[0]), static_cast<std::size_t>(attrs[1]));
  if (attrs[1] != byte_size(type.dtype)) {
    return {[bytes = std::vector(elements.begin(), elements.end())](const KernelArgs& args) {
      std::ranges::copy(bytes, args.result);
    }};
  }
  return visit_dtype(type.dtype, [&]<typename T>(std::type_identity<T>) {
    T splat;
    std::memcpy(&splat, elements.data(), sizeof splat);
    return Kernel{[splat, count = type.num_elements()](const KernelArgs& args) {
      std::fill_n(as<T>(args.result), count, splat);
    }};
  });
}

Kernel iota(const Program& program, OpId op, const ChipContext& chip) {
  const TensorType& type = program.type(program.result(op));
  const auto attrs = program.op_attrs(op);
  const auto dim = static_cast<int>(attrs[0]);
  const auto atoms = AtomList::from_bits(static_cast<std::uint64_t>(attrs[1]));
  const std::int64_t size = type.shape[dim];
  const std::int64_t first = chip.mesh.index_in(chip.position, atoms) * size;
  std::int64_t inner = 1;
  for (int d = dim + 1; d < type.shape.size(); ++d) inner *= type.shape[d];
  return visit_dtype(type.dtype, [&]<typename T>(std::type_identity<T>) {
    return Kernel{[=, count = type.num_elements()](const KernelArgs& args) {
      T* result = as<T>(args.result);
      for (const T* end = result + count; result != end;) {
        for (std::int64_t i = 0; i < size; ++i, result += inner) {
          std::fill_n(result, inner, store<T>(converted<Compute<T>>(first + i)));
        }
      }
    }};
  });
}

}  // namespace

Kernel leaf(const Program& program, OpId op, const ChipContext& chip) {
  return program.kind(op) == OpKind::iota ? iota(program, op, chip) : constant(program, op);
}

}  // namespace weft::kernels
