#pragma once
/// Call: one call of the tensor API. For the files of this folder.

#include <cstdint>
#include <initializer_list>
#include <source_location>
#include <string_view>
#include <vector>

#include <weft/error.hpp>

#include "spmd/ops/row.hpp"
#include "spmd/tensor/trace.hpp"

namespace weft {

using Dims = std::vector<std::int64_t>;

/// The mesh's axes that have some of the atoms: `"data", "model"`.
std::string axes_text(const Mesh& mesh, AtomMask atoms);

/// Whether sums and products are i32 (torch: i64), in which more of them fit.
inline bool is_summed_as_i32(DType dtype) {
  return dtype == DType::pred || dtype == DType::i8 || dtype == DType::u8;
}

/// While it lives, ops are recorded with the location `loc`. In nested calls (cross_entropy calls
/// mean) name and location are those of the outermost call, which is the user's.
class Call {
 public:
  /// Throws not_found outside of a RuntimeScope.
  Call(std::string_view function, const std::source_location& loc);
  ~Call() noexcept(false);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  Trace& trace() const { return trace_; }
  Builder* operator->() { return &trace_.builder(); }
  const std::source_location& loc() const { return trace_.site()->loc; }

  /// Throws invalid_argument: "add: what is wrong (at train.cpp:41)".
  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(Errc::invalid_argument, "{}: {} (at {})", trace_.site()->function,
         fmt::format(format, std::forward<Args>(args)...), file_line(loc()));
  }

  /// Throws mesh_mismatch unless the program will run on this mesh, because shardings name its
  /// atoms.
  void expect_mesh(const Mesh& mesh) const;
  /// Refuses a sharding of data whose parts don't divide a dim: padding of a batch would take part
  /// in means. (Computed values are padded by pad_uneven.)
  void expect_even(const TensorNode& data, const Mesh& mesh, const Sharding& sharding) const;
  /// The operand's node; refuses a number and a tensor without a value.
  const NodePtr& node(const Operand& x) const {
    if (x.is_number() || !x.tensor().defined()) refuse_operand(x);
    return x.tensor().node();
  }
  const TensorType& type(const Operand& x) const { return node(x)->type; }
  /// Refuses what isn't a pred[], and in a shard_map what may differ between chips.
  ValueId predicate(const Operand& x);
  ValueId value(const Operand& x) { return trace_.value_of(node(x), loc()); }
  /// The operand broadcast to this shape; a number becomes a constant of the dtype.
  ValueId value(const Operand& x, DType dtype, const Shape& shape);
  /// Numpy's broadcast to a shape that fits.
  ValueId spread(ValueId value, const Shape& shape);
  /// An index or labels as i32: i64, which torch has, is converted. Refuses other dtypes.
  Tensor index(const Tensor& given);
  Tensor result(ValueId value) { return trace_.record(value); }

  /// Under autocast: whether an op that runs in autocast's dtype has an f32 operand, or one that
  /// runs in f32 has a narrower one. Empty tensors don't count.
  template <typename... Operands>
  bool lowers(const Operands&... operands) const {
    const auto dtype = trace_.modes().autocast;
    return dtype && (is_of(operands, DType::f32) || ...);
  }
  template <typename... Operands>
  bool widens(const Operands&... operands) const {
    const auto dtype = trace_.modes().autocast;
    return dtype && (is_of(operands, *dtype) || ...);
  }
  /// The tensor converted to autocast's dtype, or to f32; empty or non-floating tensors unchanged.
  Tensor lowered(const Operand& x) { return in_dtype(x, *trace_.modes().autocast); }
  Tensor widened(const Operand& x) { return in_dtype(x, DType::f32); }

  /// function(x), of bf16 and f16 computed in f32: the result alone is rounded, as in torch.
  template <typename Function>
  Tensor rounded_once(const Operand& x, Function function) {
    const DType dtype = type(x).dtype;
    if (!is_half(dtype)) return function(x.tensor());
    return in_dtype(function(in_dtype(x, DType::f32)), dtype);
  }

  /// The common dtype of the tensor operands, under autocast the widest; f32 if all are numbers.
  DType common_dtype(std::initializer_list<const Operand*> operands) const;
  /// The shape to which numpy's rules broadcast the tensor operands.
  Shape common_shape(std::initializer_list<const Operand*> operands) const;
  /// `dim`, which counts from the end if it is negative, as an index from 0.
  int dim_of(int dim, int num_dims) const;
  /// The axis of the mesh. Refuses a name that it lacks: "WHAT names axis ..".
  int axis_of(const Mesh& mesh, const std::string& name, std::string_view what) const;
  /// Refuses more than kDimCountMax sizes.
  Shape shape_of(const Dims& sizes) const;
  /// Distinct dims, ascending; an empty list means all of them.
  std::vector<std::int64_t> dims_of(const std::vector<int>& dims, int num_dims) const;

 private:
  [[noreturn]] void refuse_operand(const Operand& x) const;
  /// Why shapes may differ in the function of a shard_map(): an operand is whole there.
  std::string whole_operand(std::initializer_list<const Operand*> operands) const;
  static bool is_of(const Operand& x, DType dtype) {
    return !x.is_number() && x.tensor().defined() && x.tensor().type().dtype == dtype;
  }
  Tensor in_dtype(const Operand& x, DType dtype);

  Trace& trace_;
  bool outermost_;
};

/// The gradient of a custom op or of custom_vjp(): a CustomVjpRule (passes/grad.hpp) that calls the
/// function with which the op was registered, or which custom_vjp() was given.
std::vector<ValueId> custom_cotangents(Trace& trace, const ForwardOp& op, ValueId cotangent);

}  // namespace weft
