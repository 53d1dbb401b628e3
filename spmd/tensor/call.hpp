#pragma once
/// Call: a call of a function of the tensor API. Only the files of this folder use it.

#include <cstdint>
#include <initializer_list>
#include <source_location>
#include <string_view>
#include <vector>

#include <weft/tensor/error.hpp>

#include "spmd/ops/row.hpp"
#include "spmd/tensor/trace.hpp"

namespace weft {

using Dims = std::vector<std::int64_t>;

/// Returns the names of the mesh's axes that have any of the atoms, such as `"data", "model"`.
std::string axes_text(const Mesh& mesh, AtomMask atoms);

/// Returns whether sums and products of this dtype are computed in i32, because the dtype itself
/// would soon overflow. (torch uses i64.)
inline bool is_summed_as_i32(DType dtype) {
  return dtype == DType::pred || dtype == DType::i8 || dtype == DType::u8;
}

/// Gives the location `loc` to the ops that are recorded during this object's lifetime. If calls
/// are nested, as when cross_entropy() calls mean(), the ops get the name and location of the
/// outermost call, which the user made.
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

  /// Throws invalid_argument with a message such as "add: what is wrong (at train.cpp:41)".
  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(Errc::invalid_argument, "{}: {} (at {})", trace_.site()->function,
         fmt::format(format, std::forward<Args>(args)...), file_line(loc()));
  }

  /// Throws mesh_mismatch unless the program will run on this mesh, to whose atoms the shardings in
  /// the call refer.
  void expect_mesh(const Mesh& mesh) const;
  /// Refuses a sharding of data whose parts don't divide a dim evenly, because padding of a batch
  /// would be counted in means. (Computed values may be uneven: pad_uneven pads them.)
  void expect_even(const TensorNode& data, const Mesh& mesh, const Sharding& sharding) const;
  /// Returns the operand's node. Refuses numbers, and tensors without a value.
  const NodePtr& node(const Operand& x) const {
    if (x.is_number() || !x.tensor().defined()) refuse_operand(x);
    return x.tensor().node();
  }
  const TensorType& type(const Operand& x) const { return node(x)->type; }
  /// Returns the value of a predicate. Refuses an operand that isn't pred[], and in a shard_map a
  /// value that may differ between chips.
  ValueId predicate(const Operand& x);
  ValueId value(const Operand& x) { return trace_.value_of(node(x), loc()); }
  /// Returns the operand broadcast to this shape; a number becomes a constant of the dtype.
  ValueId value(const Operand& x, DType dtype, const Shape& shape);
  /// Broadcasts the value to a shape that fits by numpy's rules.
  ValueId spread(ValueId value, const Shape& shape);
  /// Returns an index or labels as i32. Converts i64, which torch uses, and refuses other dtypes.
  Tensor index(const Tensor& given);
  Tensor result(ValueId value) { return trace_.record(value); }

  /// Returns whether autocast converts any of these operands: an f32 operand if the op runs in
  /// autocast's dtype, or a narrower operand if the op runs in f32. Empty tensors don't count.
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
  /// Return the tensor converted to autocast's dtype (lowered()) or to f32 (widened()). Empty and
  /// non-floating tensors remain unchanged.
  Tensor lowered(const Operand& x) { return in_dtype(x, *trace_.modes().autocast); }
  Tensor widened(const Operand& x) { return in_dtype(x, DType::f32); }

  /// Returns function(x). For bf16 and f16 the function is computed in f32, so that only the result
  /// is rounded, as in torch.
  template <typename Function>
  Tensor rounded_once(const Operand& x, Function function) {
    const DType dtype = type(x).dtype;
    if (!is_half(dtype)) return function(x.tensor());
    return in_dtype(function(in_dtype(x, DType::f32)), dtype);
  }

  /// Returns the common dtype of the tensor operands: the widest under autocast, f32 if all
  /// operands are numbers.
  DType common_dtype(std::initializer_list<const Operand*> operands) const;
  /// Returns the shape to which numpy's rules broadcast the tensor operands.
  Shape common_shape(std::initializer_list<const Operand*> operands) const;
  /// Returns `dim` as an index from 0; a negative `dim` counts from the end.
  int dim_of(int dim, int num_dims) const;
  /// Returns the index of the mesh's axis. Refuses a name that the mesh lacks, with a message such
  /// as "WHAT names axis ..".
  int axis_of(const Mesh& mesh, const std::string& name, std::string_view what) const;
  /// Returns the sizes as a shape; refuses more than kDimCountMax sizes.
  Shape shape_of(const Dims& sizes) const;
  /// Returns the distinct dims, ascending; an empty list means all dims.
  std::vector<std::int64_t> dims_of(const std::vector<int>& dims, int num_dims) const;

 private:
  [[noreturn]] void refuse_operand(const Operand& x) const;
  /// Returns a hint for shape errors in the function of a shard_map() if one of the operands is a
  /// whole tensor instead of a chip's part; otherwise "".
  std::string whole_operand(std::initializer_list<const Operand*> operands) const;
  static bool is_of(const Operand& x, DType dtype) {
    return !x.is_number() && x.tensor().defined() && x.tensor().type().dtype == dtype;
  }
  Tensor in_dtype(const Operand& x, DType dtype);

  Trace& trace_;
  bool outermost_;
};

/// Returns the cotangents of the operands of a custom op or of a custom_vjp() call, computed by the
/// gradient function that the user gave for it.
std::vector<ValueId> custom_cotangents(Trace& trace, const ForwardOp& op, ValueId cotangent);

}  // namespace weft
