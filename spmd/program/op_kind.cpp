#include <weft/spmd/program/op_kind.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include <weft/spmd/error.hpp>

namespace weft {
namespace {

constexpr std::array kNames = std::to_array<std::pair<OpKind, std::string_view>>({
    {OpKind::constant, "constant"},
    {OpKind::iota, "iota"},
    {OpKind::rng_bit_generator, "rng_bit_generator"},
    {OpKind::negate, "negate"},
    {OpKind::sign, "sign"},
    {OpKind::abs, "abs"},
    {OpKind::exponential, "exponential"},
    {OpKind::log, "log"},
    {OpKind::tanh, "tanh"},
    {OpKind::logistic, "logistic"},
    {OpKind::sine, "sine"},
    {OpKind::cosine, "cosine"},
    {OpKind::is_finite, "is_finite"},
    {OpKind::sqrt, "sqrt"},
    {OpKind::rsqrt, "rsqrt"},
    {OpKind::convert, "convert"},
    {OpKind::add, "add"},
    {OpKind::subtract, "subtract"},
    {OpKind::multiply, "multiply"},
    {OpKind::divide, "divide"},
    {OpKind::maximum, "maximum"},
    {OpKind::minimum, "minimum"},
    {OpKind::power, "power"},
    {OpKind::compare, "compare"},
    {OpKind::logical_and, "logical_and"},
    {OpKind::select, "select"},
    {OpKind::reshape, "reshape"},
    {OpKind::transpose, "transpose"},
    {OpKind::slice, "slice"},
    {OpKind::pad, "pad"},
    {OpKind::concatenate, "concatenate"},
    {OpKind::reverse, "reverse"},
    {OpKind::broadcast_in_dim, "broadcast_in_dim"},
    {OpKind::dot_general, "dot_general"},
    {OpKind::reduce, "reduce"},
    {OpKind::gather, "gather"},
    {OpKind::scatter, "scatter"},
    {OpKind::dynamic_slice, "dynamic_slice"},
    {OpKind::dynamic_update_slice, "dynamic_update_slice"},
    {OpKind::convolution, "convolution"},
    {OpKind::reduce_window, "reduce_window"},
    {OpKind::select_and_scatter, "select_and_scatter"},
    {OpKind::sharding_constraint, "sharding_constraint"},
    {OpKind::copy, "copy"},
    {OpKind::optimization_barrier, "optimization_barrier"},
    {OpKind::custom_call, "custom_call"},
    {OpKind::check_index, "check_index"},
    {OpKind::all_reduce, "all_reduce"},
    {OpKind::all_gather, "all_gather"},
    {OpKind::reduce_scatter, "reduce_scatter"},
    {OpKind::all_to_all, "all_to_all"},
    {OpKind::collective_permute, "collective_permute"},
    {OpKind::all_slice, "all_slice"},
    {OpKind::softmax, "softmax"},
    {OpKind::softmax_grad, "softmax_grad"},
    {OpKind::log_softmax, "log_softmax"},
    {OpKind::log_softmax_grad, "log_softmax_grad"},
    {OpKind::normalize, "normalize"},
    {OpKind::normalize_grad, "normalize_grad"},
    {OpKind::attention, "attention"},
    {OpKind::attention_grad, "attention_grad"},
    {OpKind::cross_entropy, "cross_entropy"},
    {OpKind::cross_entropy_grad, "cross_entropy_grad"},
});

}  // namespace

std::string_view to_string(CompareDirection direction) noexcept {
  switch (direction) {
    case CompareDirection::eq: return "eq";
    case CompareDirection::ne: return "ne";
    case CompareDirection::lt: return "lt";
    case CompareDirection::le: return "le";
    case CompareDirection::gt: return "gt";
    case CompareDirection::ge: return "ge";
  }
  return "unknown";
}

std::string_view to_string(OpKind kind) noexcept {
  static constexpr auto kNameOf = [] {
    std::array<std::string_view, 128> names{};
    for (const auto& [known, name] : kNames) names[static_cast<std::size_t>(known)] = name;
    return names;
  }();
  const auto number = static_cast<std::size_t>(kind);
  return number < kNameOf.size() && !kNameOf[number].empty() ? kNameOf[number] : "unknown";
}

OpKind parse_op_kind(std::string_view name) {
  const auto found = std::find_if(kNames.begin(), kNames.end(),
                                  [&](const auto& entry) { return entry.second == name; });
  if (found == kNames.end()) {
    fail(Errc::invalid_argument, "\"{}\" isn't an op; ops have StableHLO's names, as dot_general",
         name);
  }
  return found->first;
}

}  // namespace weft
