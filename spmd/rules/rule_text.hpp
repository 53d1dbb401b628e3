#pragma once
/// RuleText: a sharding rule as a text, of weft's own ops and of custom_calls:
///
///   rule   = tensor {"," tensor} "->" tensor {clause}      "b s, s -> b s"
///   tensor = {name}                                        a name for each dim
///   clause = (" reduction={" | " need_replication={") names "}"
///
/// Dims of one name are one factor: they have one size and are cut alike. A factor that isn't on
/// both sides needs replication, unless it is a reduction. The rules of weft's own ops may also
/// have: "d*", which stands for any number of dims; "free={..}", factors of the result that each
/// chip makes for itself; "order={..}", the factors' order, on which ties depend.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "spmd/rules/factor_rule.hpp"

namespace weft {

struct RuleText {
  static constexpr std::size_t kTensorCountMax = 9;
  struct Name {
    std::string_view name{};  ///< in the text, which outlives this
    bool any_count = false;   ///< stands for any number of dims
    bool in_operands = false;
    bool in_result = false;
    FactorType type = FactorType::pass_through;
  };
  struct TensorDims {
    std::array<std::uint8_t, kDimCountMax> names{};
    std::uint8_t count = 0;
    constexpr const std::uint8_t* begin() const { return names.data(); }
    constexpr const std::uint8_t* end() const { return names.data() + count; }
  };
  std::array<Name, kFactorCountMax> names{};
  std::array<TensorDims, kTensorCountMax> tensors{};  ///< operands, then the result
  std::array<std::uint8_t, kFactorCountMax> order{};
  std::size_t num_names = 0;
  std::size_t num_tensors = 0;

  constexpr std::size_t num_operands() const { return num_tensors - 1; }
  constexpr const TensorDims& result() const { return tensors[num_tensors - 1]; }
};

/// What is wrong with a text.
struct RuleFault {
  enum class Kind : std::uint8_t {
    none,
    character,        ///< expected ',' or '->'
    after_result,     ///< expected the end
    repeated,         ///< a name stands twice for one tensor
    dims,             ///< a tensor has too many
    names,            ///< there are too many
    tensors,          ///< there are too many
    clause,           ///< an unknown clause, or one without its end
    unknown_name,     ///< a clause names what no tensor has
    summed_result,    ///< a reduction that the result has
    held_and_summed,  ///< in two clauses
    order,            ///< not each name once
  };
  Kind kind = Kind::none;
  std::size_t at = 0;       ///< in the text
  std::string_view name{};  ///< of the factor
  constexpr explicit operator bool() const { return kind != Kind::none; }
};

/// The rule for operands and a result of these shapes; `adds`: whether the dtype can be added up,
/// else what would be a reduction needs replication.
FactorRule to_factor_rule(const RuleText& text, std::span<const Shape* const> tensors, bool adds);

}  // namespace weft
