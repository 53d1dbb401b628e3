#include "chips/cpu/kernels/leaf.hpp"

#include <algorithm>
#include <vector>

#include "chips/cpu/loops/conversion.hpp"
#include "chips/cpu/loops/element.hpp"
#include "chips/cpu/loops/prepares.hpp"

namespace weft::kernels {
namespace {

Kernel constant(const Program& program, OpId op) {
  const auto attrs = program.op_attrs(op);
  const auto elements =
      std::span(program.const_pool)
          .subspan(static_cast<std::size_t>(attrs[0]), static_cast<std::size_t>(attrs[1]));
  return {[bytes = std::vector(elements.begin(), elements.end())](const KernelArgs& args) {
    std::ranges::copy(bytes, args.result);
  }};
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

Kernel fill(const Program& program, OpId op) {
  const TensorType& type = program.type(program.result(op));
  const bool is_constant = program.kind(op) == OpKind::constant;
  return visit_dtype(type.dtype, [&]<typename T>(std::type_identity<T>) {
    T splat{};
    if (is_constant) {
      std::memcpy(&splat, &program.const_pool[static_cast<std::size_t>(program.op_attrs(op)[0])],
                  sizeof splat);
    }
    return Kernel{[=, size = type.num_elements()](const KernelArgs& args) {
      const T element = is_constant ? splat : *as<T>(args.operands[0]);
      std::fill_n(as<T>(args.result), std::min(size, args.count_max), element);
    }};
  });
}

/// Makes a kernel that writes the constant in every run, because a plan may give the constant's
/// place to another value after its last use.
constexpr Prepare prepares::constant = prepare_by<kernels::constant>;
constexpr Prepare prepares::iota = prepare_by<kernels::iota>;

}  // namespace weft::kernels
