#pragma once
/// CustomCall: the argument of a custom op's kernel (CustomOp, custom_op.hpp).

#include <cstddef>
#include <span>
#include <string_view>

#include <weft/element.hpp>
#include <weft/error.hpp>

namespace weft {

/// One call of a kernel on one chip: the chip's shards of the operands, dense and row-major, and
/// memory for its shard of the result, whose elements are unspecified before the call.
class CustomCall {
 public:
  /// `types`: those of the operands, then that of the result. They must outlive the call.
  CustomCall(std::span<const TensorType> types, std::span<const std::byte* const> operands,
             std::byte* result)
      : types_(types), operands_(operands), result_(result) {}

  std::size_t num_operands() const { return operands_.size(); }
  /// The type, with the shape of the chip's shard.
  const TensorType& operand_type(std::size_t i) const { return types_[checked(i)]; }
  const TensorType& result_type() const { return types_.back(); }

  /// The elements. T is float, double, Bf16, bool, std::int32_t, std::uint32_t or std::int64_t, the
  /// type of the operand's dtype. Throws invalid_argument for another T, or an index that is no
  /// operand's.
  template <typename T>
  std::span<const T> operand(std::size_t i) const {
    const auto size = expect<T>(operand_type(i), "operand", i);
    return {reinterpret_cast<const T*>(operands_[i]), size};
  }
  template <typename T>
  std::span<T> result() const {
    const auto size = expect<T>(result_type(), "result", 0);
    return {reinterpret_cast<T*>(result_), size};
  }

 private:
  std::size_t checked(std::size_t i) const;
  [[noreturn]] static void refuse(const TensorType& type, DType dtype, std::string_view what,
                                  std::size_t i);
  template <typename T>
  static std::size_t expect(const TensorType& type, std::string_view what, std::size_t i) {
    static_assert(dtype_of<T>().has_value(), "no dtype has this C++ type");
    if (type.dtype != *dtype_of<T>()) refuse(type, *dtype_of<T>(), what, i);
    return static_cast<std::size_t>(type.num_elements());
  }

  std::span<const TensorType> types_;
  std::span<const std::byte* const> operands_;
  std::byte* result_;
};

}  // namespace weft
