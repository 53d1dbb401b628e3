#pragma once
/// RuleText: the text of a sharding rule, of one of weft's own ops or of a custom_call:
///
///   rule   = tensor {"," tensor} "->" tensor {clause}      "b s, s -> b s"
///   tensor = {name}                                        a name for each dim
///   clause = (" reduction={" | " need_replication={") names "}"
///
/// Dims of the same name are one factor: they have the same size and are sharded alike. A factor
/// that isn't both in an operand and in the result needs replication, unless it is a reduction.
/// Rules of weft's own ops may also contain "d*", which stands for any number of dims; "free={..}",
/// which lists factors of the result that each chip can make for itself; and "order={..}", which
/// orders the factors and so decides between equally good assignments.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "spmd/rules/factor_rule.hpp"

namespace weft {

struct RuleText {
  static constexpr std::size_t kTensorCountMax = 9;
  struct Name {
    std::string_view name{};  ///< points into the text, which must outlive this object
    bool any_count = false;   ///< whether the name stands for any number of dims
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

/// Describes an error in the text of a rule.
struct RuleFault {
  enum class Kind : std::uint8_t {
    none,
    character,        ///< expected ',' or '->'
    after_result,     ///< expected a clause or the end
    repeated,         ///< a tensor has a name twice
    dims,             ///< a tensor has too many dims
    names,            ///< the rule has too many factors
    tensors,          ///< the rule has too many tensors
    clause,           ///< expected a factor's name or '}' in a clause
    unknown_name,     ///< a clause has a name that no tensor has
    summed_result,    ///< a reduction factor is in the result
    held_and_summed,  ///< a factor is in both reduction and need_replication
    order,            ///< the order clause doesn't have each name once
  };
  Kind kind = Kind::none;
  std::size_t at = 0;       ///< position in the text
  std::string_view name{};  ///< the name of the wrong factor
  constexpr explicit operator bool() const { return kind != Kind::none; }
};

/// Returns the rule for operands and a result of these shapes. If values of the dtype can't be
/// added up (`adds` is false), reduction factors need replication.
FactorRule to_factor_rule(const RuleText& text, std::span<const Shape* const> tensors, bool adds);

}  // namespace weft
