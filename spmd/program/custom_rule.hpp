#pragma once
/// CustomRule: how the dims of a custom_call's operands and result correspond (Shardy's op sharding
/// rule), by its text: "b s, s -> b s reduction={} need_replication={s}" without what is empty.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weft/spmd/program/type.hpp>

namespace weft {

/// Dims of one name are one factor: they have one size and are cut alike.
struct CustomRule {
  enum class Kind : std::uint8_t { pass_through, reduction, need_replication };
  struct Factor {
    std::string name;
    Kind kind = Kind::pass_through;
  };
  std::vector<Factor> factors;                 ///< in the order of the text
  std::vector<std::vector<std::size_t>> dims;  ///< [tensor][dim]: operands, then the result
  std::size_t num_operands() const { return dims.size() - 1; }
};

/// Of `text`, "b s, s -> b s": for each operand a name for each dim, then those of the result. A
/// factor that isn't on both sides needs replication, unless it is a reduction. Throws
/// invalid_argument naming the field (sharding_rule, need_replication_factors or
/// reduction_factors), what it has, and how to mend it.
CustomRule make_custom_rule(std::string_view text, std::span<const std::string> need_replication,
                            std::span<const std::string> reduction);

/// The whole rule, as programs and plans keep it.
std::string to_text(const CustomRule& rule);
/// Of such a text.
CustomRule parse_custom_rule(std::string_view text);

/// Of each factor, -1 of those that the operands haven't got. Throws invalid_argument for operands
/// that the rule doesn't fit.
std::vector<std::int64_t> factor_sizes(const CustomRule& rule,
                                       std::span<const TensorType> operands);
/// Throws invalid_argument unless `result` fits the rule, given the operands' sizes.
void check_custom_result(const CustomRule& rule, std::span<const std::int64_t> sizes,
                         const TensorType& result);

}  // namespace weft
