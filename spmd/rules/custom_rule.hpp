#pragma once
/// Reads, writes and checks sharding rules of custom_calls, in the form of rule_text.hpp.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spmd/rules/rule_text.hpp"

namespace weft {

/// Reads `text`, such as "b s, s -> b s", which must outlive the rule. Throws invalid_argument if
/// the rule is wrong; the message has the wrong field (sharding_rule, need_replication_factors or
/// reduction_factors), its content, and how to correct it.
RuleText make_custom_rule(std::string_view text, std::span<const std::string> need_replication,
                          std::span<const std::string> reduction);

/// Returns the rule in the form that programs and plans store, with all clauses that aren't empty.
std::string to_text(const RuleText& rule);
/// Reads a text that to_text() wrote. The text must outlive the rule.
RuleText parse_custom_rule(std::string_view text);

/// Returns the size of each factor, or -1 for a factor that no operand has. Throws invalid_argument
/// for operands that don't fit the rule.
std::vector<std::int64_t> factor_sizes(const RuleText& rule, std::span<const TensorType> operands);
/// Throws invalid_argument unless `result` fits the rule. `sizes` are the factor_sizes() of the
/// operands.
void check_custom_result(const RuleText& rule, std::span<const std::int64_t> sizes,
                         const TensorType& result);

}  // namespace weft
