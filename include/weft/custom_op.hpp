#pragma once
/// Ops of a program's own: a C++ function that every chip runs on its shards, with its sharding
/// rule and its gradient (jax.ffi with custom_partitioning and custom_vjp; torch.library's
/// custom_op).

#include <source_location>
#include <span>
#include <string>
#include <vector>

#include <weft/custom_call.hpp>
#include <weft/tensor.hpp>

namespace weft {

/// What a gradient is made of.
struct CustomVjp {
  std::vector<Tensor> operands;
  Tensor result;
  Tensor cotangent;  ///< of the result, of its type
};

/// An op of one result: several can be one behind the other, to be taken apart with slice().
///
///   const weft::CustomOp kSoftClip{
///       .name = "soft_clip",
///       .sharding_rule = "b s, s -> b s",  // any part of a row, with that part of the limits
///       .kernel =
///           [](const weft::CustomCall& call) {
///             const auto x = call.operand<float>(0);
///             const auto limit = call.operand<float>(1);
///             const auto y = call.result<float>();
///             for (std::size_t i = 0; i < y.size(); ++i) {
///               const float most = limit[i % limit.size()];
///               y[i] = most * std::tanh(x[i] / most);
///             }
///           },
///       .vjp = [](const weft::CustomVjp& v) -> std::vector<weft::Tensor> {
///         const weft::Tensor ratio = v.result / v.operands[1];
///         return {v.cotangent * (1.0 - ratio * ratio), {}};
///       }};
///
///   const weft::Tensor y = weft::custom_call(kSoftClip, {x, limit});
///
/// The functions are pure: what they give depends on their operands alone. An op may be computed
/// once for several calls with the same operands, again (checkpoint()), or not at all. They are
/// plain functions, or lambdas without captures: what else they need is an operand; the place in
/// the whole tensor is an iota().
struct CustomOp {
  /// In programs, dumps and plan files. Has one meaning in a process.
  std::string name;
  /// For each operand a name for each dim, with commas between, then those of the result. Dims of
  /// one name are a factor: they have one size, and are cut alike. A factor that operands and the
  /// result have may be cut, where the mesh divides it: so the kernel never sees padding. Others
  /// are held whole by every chip, unless they are in `reduction_factors`.
  std::string sharding_rule;
  /// Factors that every chip needs whole, though operands and the result have them.
  std::vector<std::string> need_replication_factors = {};
  /// Factors that only operands have, of which a part gives a partial result: those are added up.
  std::vector<std::string> reduction_factors = {};
  /// The result's type, given the operands', by their global shapes. Without it, it has the first
  /// operand's dtype, and the sizes that its factors have in the operands.
  TensorType (*result_type)(std::span<const TensorType> operands) = nullptr;
  /// Fills the chip's shard of the result. Runs on the chip's thread, those of several chips at the
  /// same time. What it throws ends the job, with the op's name and place.
  void (*kernel)(const CustomCall& call) = nullptr;
  /// The cotangent of each operand, of its type, by ordinary ops or other custom ones; an empty
  /// Tensor for none. Without it, a gradient through the op is refused.
  std::vector<Tensor> (*vjp)(const CustomVjp& vjp) = nullptr;
};

/// Records a call. autocast() leaves its operands as they are. Throws invalid_argument, with the
/// field of the op, its value and what was expected, where the op or its operands (1 to 8) don't
/// fit, or the name means another op.
Tensor custom_call(const CustomOp& op, const std::vector<Tensor>& operands,
                   std::source_location loc = std::source_location::current());

}  // namespace weft
