#include "spmd/rules/custom_rule.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "spmd/rules/rule_reader.hpp"

namespace weft {
namespace {

using Names = std::span<const RuleText::Name>;

Names names_of(const RuleText& rule) { return std::span(rule.names).first(rule.num_names); }

/// Returns the names of the factors of this type (of all factors without a type), separated by
/// `between`.
std::string joined(const RuleText& rule, std::string_view between,
                   std::optional<FactorType> type = {}) {
  std::string text;
  for (const RuleText::Name& factor : names_of(rule)) {
    if (type && factor.type != *type) continue;
    text += fmt::format("{}{}", text.empty() ? "" : between, factor.name);
  }
  return text;
}

std::string explain(const RuleFault& fault, std::string_view text) {
  using Kind = RuleFault::Kind;
  const std::string_view rest = text.substr(std::min(fault.at, text.size()));
  const std::string found =
      rest.empty() ? "the end" : fmt::format("'{}'", rest.substr(0, rest.find(' ')));
  const auto expected = [&](std::string_view what) {
    return fmt::format(
        "expected {} at character {}, found {}; write a name for each dim and a comma between "
        "operands, for example \"b s, s -> b s\"",
        what, fault.at + 1, found);
  };
  switch (fault.kind) {
    case Kind::character: return expected("',' or '->'");
    case Kind::after_result: return expected("the end (a rule has only one result)");
    case Kind::repeated:
      return fmt::format(
          "factor {} is used twice in one tensor; give each dim of the tensor a different name",
          fault.name);
    case Kind::dims:
      return fmt::format("a tensor has more than {} dims, the maximum", kDimCountMax);
    case Kind::names: return fmt::format("the rule has more than {} factors", kFactorCountMax);
    case Kind::tensors:
      return fmt::format("the rule has more than {} operands", RuleText::kTensorCountMax - 1);
    case Kind::clause: return expected("the name of a factor or '}'");
    case Kind::unknown_name: return fmt::format("\"{}\" in braces isn't a factor", fault.name);
    case Kind::held_and_summed:
      return fmt::format(
          "\"{}\" is in two clauses; a factor is either a reduction factor or needs replication",
          fault.name);
    default: return "the rule can't be read";
  }
}

/// Sets the type of the factors that a field of CustomOp names, besides those named in the rule's
/// text.
void set_types(RuleText& rule, std::string_view field, std::span<const std::string> names,
               FactorType type) {
  for (const std::string& name : names) {
    const auto found = std::ranges::find(names_of(rule), name, &RuleText::Name::name);
    if (found == names_of(rule).end()) {
      fail(Errc::invalid_argument, "{}: \"{}\" isn't a factor of \"{}\"; its factors are {}", field,
           name, to_text(rule), joined(rule, ", "));
    }
    RuleText::Name& factor = rule.names[static_cast<std::size_t>(found - names_of(rule).begin())];
    if (factor.type != FactorType::pass_through && factor.type != type) {
      fail(Errc::invalid_argument,
           "{}: \"{}\" is also in reduction_factors; a factor is either a reduction factor or "
           "needs replication",
           field, name);
    }
    factor.type = type;
  }
}

std::string clause(const RuleText& rule, std::string_view key, FactorType type) {
  const std::string names = joined(rule, " ", type);
  return names.empty() ? "" : fmt::format(" {}={{{}}}", key, names);
}

}  // namespace

RuleText make_custom_rule(std::string_view text, std::span<const std::string> need_replication,
                          std::span<const std::string> reduction) {
  RuleText rule;
  RuleReader reader(text, false);
  if (const RuleFault fault = reader.read(rule)) {
    fail(Errc::invalid_argument, "sharding_rule \"{}\": {}", text, explain(fault, text));
  }
  set_types(rule, "reduction_factors", reduction, FactorType::reduction);
  set_types(rule, "need_replication_factors", need_replication, FactorType::need_replication);
  if (const RuleFault fault = reader.finish()) {
    fail(Errc::invalid_argument,
         "reduction_factors: \"{}\" is a dim of the result of \"{}\", so it can't be a reduction "
         "factor; name factors that only operands have",
         fault.name, text);
  }
  return rule;
}

std::string to_text(const RuleText& rule) {
  std::string text;
  for (std::size_t tensor = 0; tensor < rule.num_tensors; ++tensor) {
    if (tensor > 0) text += tensor == rule.num_operands() ? " ->" : ",";
    for (const std::size_t factor : rule.tensors[tensor]) {
      text += fmt::format("{}{}", text.empty() ? "" : " ", rule.names[factor].name);
    }
  }
  return text + clause(rule, "reduction", FactorType::reduction) +
         clause(rule, "need_replication", FactorType::need_replication);
}

RuleText parse_custom_rule(std::string_view text) { return make_custom_rule(text, {}, {}); }

std::vector<std::int64_t> factor_sizes(const RuleText& rule, std::span<const TensorType> operands) {
  const auto refuse = [&](const std::string& what) {
    fail(Errc::invalid_argument, "sharding_rule \"{}\": {}", to_text(rule), what);
  };
  if (operands.size() != rule.num_operands()) {
    refuse(
        fmt::format("is for {} operands, but {} are given; write the dims of each operand, with a "
                    "comma between operands",
                    rule.num_operands(), operands.size()));
  }
  std::vector<std::int64_t> sizes(rule.num_names, -1);
  std::vector<std::size_t> from(sizes.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Shape& shape = operands[i].shape;
    if (shape.size() != static_cast<int>(std::size_t{rule.tensors[i].count})) {
      refuse(fmt::format(
          "operand {} is {}, but the rule names {} dims of it; write a name for each dim", i,
          operands[i].to_string(), std::size_t{rule.tensors[i].count}));
    }
    for (int dim = 0; dim < shape.size(); ++dim) {
      const std::size_t factor = rule.tensors[i].names[static_cast<std::size_t>(dim)];
      if (sizes[factor] >= 0 && sizes[factor] != shape[dim]) {
        refuse(fmt::format(
            "factor {} is {} in operand {} {} and {} in operand {} {}; if the sizes may differ, "
            "use two names",
            rule.names[factor].name, sizes[factor], from[factor],
            operands[from[factor]].to_string(), shape[dim], i, operands[i].to_string()));
      }
      sizes[factor] = shape[dim];
      from[factor] = i;
    }
  }
  return sizes;
}

void check_custom_result(const RuleText& rule, std::span<const std::int64_t> sizes,
                         const TensorType& result) {
  const RuleText::TensorDims& dims = rule.result();
  const auto refuse = [&](const std::string& what) {
    fail(Errc::invalid_argument, "the result {} doesn't fit sharding_rule \"{}\": {}",
         result.to_string(), to_text(rule), what);
  };
  if (result.shape.size() != int{dims.count}) {
    refuse(fmt::format("the rule names {} dims of the result; write a name for each dim",
                       std::size_t{dims.count}));
  }
  for (int dim = 0; dim < result.shape.size(); ++dim) {
    const std::size_t factor = dims.names[static_cast<std::size_t>(dim)];
    if (sizes[factor] >= 0 && sizes[factor] != result.shape[dim]) {
      refuse(
          fmt::format("factor {} has size {} in the operands; give dim {} of the result this size, "
                      "or another name",
                      rule.names[factor].name, sizes[factor], dim));
    }
  }
  const bool is_sum =
      std::ranges::any_of(std::span(rule.names).first(rule.num_names),
                          [](auto& name) { return name.type == FactorType::reduction; });
  if (is_sum && result.dtype == DType::pred) {
    refuse("a result of type pred can't be a sum; leave reduction_factors empty");
  }
}

}  // namespace weft
