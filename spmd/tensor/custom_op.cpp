#include <weft/ops/custom_op.hpp>

#include <weft/nn/transforms.hpp>

#include "spmd/program/custom_function.hpp"
#include "spmd/rules/custom_rule.hpp"
#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

TensorType result_type_of(const CustomOp& op, const RuleText& rule,
                          std::span<const TensorType> operands) {
  const std::vector<std::int64_t> sizes = factor_sizes(rule, operands);
  if (op.result_type != nullptr) {
    const TensorType type = op.result_type(operands);
    try {
      check_custom_result(rule, sizes, type);
    } catch (const Error& error) {
      fail(error.code(), "result_type: {}", error.what());
    }
    return type;
  }
  std::vector<std::int64_t> shape;
  for (const std::size_t factor : rule.result()) {
    if (sizes[factor] < 0) {
      fail(Errc::invalid_argument,
           "sharding_rule \"{}\": no operand has the factor {} of the result, so its size isn't "
           "known; give a result_type",
           op.sharding_rule, rule.names[factor].name);
    }
    shape.push_back(sizes[factor]);
  }
  const TensorType type{operands[0].dtype, Shape(std::span<const std::int64_t>(shape))};
  check_custom_result(rule, sizes, type);
  return type;
}

/// The type-erased form in which CustomFunction stores a Vjp.
using ErasedVjp = void (*)();
using Vjp = std::vector<Tensor> (*)(const CustomVjp& vjp);

/// Calls the function with the operands' own dtypes, whatever autocast() surrounds the call.
template <typename Function>
std::vector<Tensor> call_vjp(const Function& function, const CustomVjp& vjp,
                             std::string_view where) try {
  const AutocastScope as_it_is(DType::f32);
  return function(vjp);
} catch (const Error& error) {
  fail(error.code(), "{}: vjp: {}", where, error.what());
}

/// Returns the operands' cotangents that `function` computes; kNoId for an operand without a
/// cotangent.
template <typename Function>
std::vector<ValueId> cotangents_of(Trace& trace, const Function& function, std::string_view where,
                                   std::span<const ValueId> operands, ValueId result,
                                   ValueId cotangent) {
  CustomVjp vjp{.operands = {}, .result = trace.record(result), .cotangent = {}};
  vjp.cotangent = trace.record(cotangent);
  for (const ValueId operand : operands) vjp.operands.push_back(trace.record(operand));
  const std::vector<Tensor> given = call_vjp(function, vjp, where);
  if (given.size() != operands.size()) {
    fail(Errc::invalid_argument,
         "{}: vjp returns {} tensors for {} operands; return one for each operand, and an empty "
         "Tensor() where there is no gradient",
         where, given.size(), operands.size());
  }
  std::vector<ValueId> cotangents;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!given[i].defined()) {
      cotangents.push_back(kNoId);
      continue;
    }
    if (given[i].type() != vjp.operands[i].type()) {
      fail(Errc::invalid_argument,
           "{}: vjp returns {} for operand {}, which is {}; a cotangent must have the type of its "
           "operand",
           where, given[i].type().to_string(), i, vjp.operands[i].type().to_string());
    }
    cotangents.push_back(trace.value_of(given[i].node(), std::source_location::current()));
  }
  return cotangents;
}

/// Returns the cotangents of the operands of a custom_vjp(). Operand 0, the user's result y, gets
/// none.
std::vector<ValueId> function_cotangents(Trace& trace, const ForwardOp& op, ValueId cotangent) {
  const CustomGradient& function = trace.regions().custom_gradients.at(op.attrs[0]);
  const Program& program = trace.builder().program();
  const std::string where =
      fmt::format("grad: custom_vjp (at {})", program.locs[trace.builder().loc()]);
  std::vector<ValueId> cotangents = cotangents_of(
      trace, function, where, std::span(op.operands).subspan(1), op.result, cotangent);
  cotangents.insert(cotangents.begin(), kNoId);
  return cotangents;
}

}  // namespace

Tensor custom_call(const CustomOp& op, const std::vector<Tensor>& operands,
                   std::source_location loc) {
  Call call("custom_call", loc);
  std::vector<TensorType> types;
  for (const Tensor& operand : operands) types.push_back(call.type(operand));
  std::vector<ValueId> values;
  CustomTarget target;
  TensorType result;
  try {
    if (op.name.empty()) fail(Errc::invalid_argument, "name: is empty; expected a name");
    if (op.kernel == nullptr) fail(Errc::invalid_argument, "kernel: is null; expected a function");
    const RuleText rule =
        make_custom_rule(op.sharding_rule, op.need_replication_factors, op.reduction_factors);
    result = result_type_of(op, rule, types);
    target = {op.name, to_text(rule)};
    register_custom_function({target, op.kernel, reinterpret_cast<ErasedVjp>(op.vjp)});
  } catch (const Error& error) {
    call.refuse("op '{}': {}", op.name, error.what());
  }
  for (const Tensor& operand : operands) values.push_back(call.value(operand));
  return call.result(call->custom_call(target, values, result));
}

Tensor custom_vjp(const std::function<Tensor(const std::vector<Tensor>& operands)>& function,
                  const CustomGradient& gradient, const std::vector<Tensor>& operands,
                  std::source_location loc) {
  if (function == nullptr || gradient == nullptr) {
    fail(Errc::invalid_argument, "custom_vjp: the {} is null; expected a function (at {})",
         function == nullptr ? "function" : "gradient", file_line(loc));
  }
  const Tensor y = function(operands);  // its ops get their own source lines
  Call call("custom_vjp", loc);
  if (operands.empty() || operands.size() > kCustomOperandCountMax) {
    call.refuse("{} operands are given: expected 1 to {}", operands.size(), kCustomOperandCountMax);
  }
  if (!is_floating(call.type(y).dtype)) {
    call.refuse("the function's result {} isn't floating, so it has no gradient",
                call.node(y)->label());
  }
  std::vector<ValueId> values{call.value(y)};
  for (const Tensor& operand : operands) values.push_back(call.value(operand));
  Regions& regions = call.trace().regions();
  const std::int64_t number = regions.custom_gradient_count++;
  regions.custom_gradients.emplace(number, gradient);
  return call.result(call->custom_gradient(values, number));
}

std::vector<ValueId> custom_cotangents(Trace& trace, const ForwardOp& op, ValueId cotangent) {
  if (op.kind == OpKind::custom_gradient) return function_cotangents(trace, op, cotangent);
  const Program& program = trace.builder().program();
  const CustomTarget target = program.custom_targets[static_cast<std::size_t>(op.attrs[0])];
  const CustomFunction* function = find_custom_function(target);
  WEFT_CHECK(function != nullptr, target.name);
  const std::string where =
      fmt::format("grad: op '{}' (at {})", target.name, program.locs[trace.builder().loc()]);
  if (function->vjp == nullptr) {
    fail(Errc::invalid_argument,
         "{} has no gradient: give the CustomOp a vjp, or make the loss independent of it", where);
  }
  return cotangents_of(trace, reinterpret_cast<Vjp>(function->vjp), where, op.operands, op.result,
                       cotangent);
}

}  // namespace weft
