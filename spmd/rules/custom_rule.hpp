#pragma once
/// The sharding rules of custom_calls, as users and programs write them (rule_text.hpp).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spmd/rules/rule_text.hpp"

namespace weft {

/// Of `text`, "b s, s -> b s", which outlives the rule. Throws invalid_argument naming the field
/// (sharding_rule, need_replication_factors or reduction_factors), what it has, and how to mend it.
RuleText make_custom_rule(std::string_view text, std::span<const std::string> need_replication,
                          std::span<const std::string> reduction);

/// The whole rule, as programs and plans keep it: with its clauses, those that are empty left out.
std::string to_text(const RuleText& rule);
/// Of such a text, which outlives the rule.
RuleText parse_custom_rule(std::string_view text);

/// Of each factor, -1 of those that the operands haven't got. Throws invalid_argument for operands
/// that the rule doesn't fit.
std::vector<std::int64_t> factor_sizes(const RuleText& rule, std::span<const TensorType> operands);
/// Throws invalid_argument unless `result` fits the rule, given the operands' sizes.
void check_custom_result(const RuleText& rule, std::span<const std::int64_t> sizes,
                         const TensorType& result);

}  // namespace weft
