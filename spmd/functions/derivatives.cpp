/// Implements vjp and jvp as gradients of sums.

#include <algorithm>

#include <weft/ops/elementwise.hpp>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

/// Refuses `given` unless its tensors are floating and have the types of their partners, one for
/// one.
void expect_partners(const Call& call, std::string_view name, std::span<const Tensor> given,
                     std::string_view partner, std::span<const Tensor> partners) {
  if (given.size() != partners.size()) {
    call.refuse("{} {} are given for {} {}: expected one for each", given.size(), name,
                partners.size(), partner);
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (call.type(given[i]) == call.type(partners[i])) continue;
    call.refuse("{}[{}] is {}, but {}[{}] is {}: expected the same type", name, i,
                call.type(given[i]).to_string(), partner, i, call.type(partners[i]).to_string());
  }
}

void expect_outputs(Call& call, std::span<const Tensor> outputs, std::span<const Tensor> wrt) {
  if (outputs.empty()) call.refuse("needs at least one output");
  for (const Tensor& output : outputs) {
    const auto is_it = [&](const Tensor& tensor) { return call.node(tensor) == call.node(output); };
    if (call.trace().is_differentiable(*call.node(output)) || std::ranges::any_of(wrt, is_it))
      continue;
    call.refuse(
        "the output {} isn't being recorded any more; differentiate it before the sync() or the "
        "compiled function that computes it",
        call.node(output)->label());
  }
  for (const Tensor& output : outputs) {
    const DType dtype = call.type(output).dtype;
    if (is_floating(dtype) && dtype == call.type(outputs.front()).dtype) continue;
    call.refuse(
        "the output {} must be floating, with the dtype of the first output, {}; cast this output",
        call.node(output)->label(), call.node(outputs.front())->label());
  }
}

/// Returns the sum of all elements of x[i] * y[i].
Tensor inner_product(std::span<const Tensor> x, std::span<const Tensor> y) {
  Tensor total = sum(x[0] * y[0]);
  for (std::size_t i = 1; i < x.size(); ++i) total = total + sum(x[i] * y[i]);
  return total;
}

}  // namespace

std::vector<Tensor> vjp(std::span<const Tensor> outputs, std::span<const Tensor> cotangents,
                        std::span<const Tensor> wrt, std::source_location loc) {
  Call call("vjp", loc);
  expect_outputs(call, outputs, wrt);
  expect_partners(call, "cotangents", cotangents, "outputs", outputs);
  std::vector<Tensor> constants;
  for (const Tensor& cotangent : cotangents) constants.push_back(stop_gradient(cotangent));
  return grad(inner_product(outputs, constants), wrt, loc);
}

std::vector<Tensor> jvp(std::span<const Tensor> outputs, std::span<const Tensor> wrt,
                        std::span<const Tensor> tangents, std::source_location loc) {
  Call call("jvp", loc);
  expect_outputs(call, outputs, wrt);
  if (wrt.empty()) call.refuse("needs at least one tensor in wrt");
  expect_partners(call, "tangents", tangents, "wrt", wrt);
  // For cotangents u, vjp gives the transposed derivative times u, which is linear in u. Its
  // gradient with respect to u, at any u, therefore applies the derivative itself.
  std::vector<Tensor> u;
  for (const Tensor& output : outputs) {
    u.push_back(full(output.shape(), 0, output.type().dtype, loc));
  }
  const std::vector<Tensor> cotangents = grad(inner_product(outputs, u), wrt, loc);
  std::vector<Tensor> constants;
  for (const Tensor& tangent : tangents) constants.push_back(stop_gradient(tangent));
  return grad(inner_product(cotangents, constants), u, loc);
}

}  // namespace weft
