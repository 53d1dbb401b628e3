#pragma once
/// Reads sharding rules (rule_text.hpp). The rules of weft's own ops are read at compile time.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "spmd/rules/rule_cursor.hpp"
#include "spmd/rules/rule_text.hpp"

namespace weft {

/// Reads a rule; `extended` allows the syntax that only weft's own ops may use.
class RuleReader {
 public:
  constexpr RuleReader(std::string_view text, bool extended) : cursor_(text), extended_(extended) {}

  constexpr RuleFault read(RuleText& rule) {
    rule_ = &rule;
    do {
      if (!accept_tensor(false)) return fault_;
    } while (cursor_.accept(","));
    if (!cursor_.accept("->")) return refuse(RuleFault::Kind::character);
    // A rule of weft such as "-> d*" is for ops without operands, but a user's rule such as "-> d"
    // is for one operand, a scalar.
    if (extended_ && rule.num_tensors == 1 && rule.tensors[0].count == 0) rule.num_tensors = 0;
    if (!accept_tensor(true)) return fault_;
    while (!cursor_.at_end()) {
      if (!accept_clause()) return fault_;
    }
    return {};
  }

  /// Completes and checks the rule. Must be called after read(), once the caller has set further
  /// types.
  constexpr RuleFault finish() {
    for (std::size_t i = 0; i < rule_->num_names; ++i) {
      RuleText::Name& factor = rule_->names[i];
      if (factor.type == FactorType::reduction && factor.in_result) {
        return refuse(Kind::summed_result, factor.name);
      }
      const bool on_both_sides = factor.in_operands && factor.in_result;
      if (factor.type == FactorType::pass_through && !on_both_sides && !free_[i]) {
        factor.type = FactorType::need_replication;
      }
    }
    return order_names();
  }

 private:
  using Kind = RuleFault::Kind;
  constexpr RuleFault refuse(Kind kind, std::string_view name = {}) {
    cursor_.at_end();
    return fault_ = {kind, cursor_.at(), name};
  }
  constexpr bool fail(Kind kind, std::string_view name = {}) { return !refuse(kind, name); }

  constexpr std::size_t find(std::string_view name) const {
    std::size_t i = 0;
    while (i < rule_->num_names && rule_->names[i].name != name) ++i;
    return i;
  }

  constexpr bool accept_tensor(bool is_result) {
    if (rule_->num_tensors == RuleText::kTensorCountMax) return fail(Kind::tensors);
    RuleText::TensorDims& dims = rule_->tensors[rule_->num_tensors++];
    // The first word of a clause isn't a name: "=" follows it.
    while (cursor_.next_is_letter()) {
      const std::size_t begin = cursor_.at();
      const std::string_view name = cursor_.word();
      if (is_result && cursor_.next_is('=')) {
        cursor_.go_back(begin);
        return true;
      }
      const std::size_t number = find(name);
      if (number == kFactorCountMax) return fail(Kind::names);
      RuleText::Name& factor = rule_->names[number];
      if (number == rule_->num_names) {
        ++rule_->num_names;
        factor.name = name;
      }
      if (extended_ && cursor_.accept("*")) factor.any_count = true;
      if (std::ranges::count(dims, number) > 0) return fail(Kind::repeated, name);
      if (dims.count == kDimCountMax) return fail(Kind::dims);
      dims.names[dims.count++] = static_cast<std::uint8_t>(number);
      (is_result ? factor.in_result : factor.in_operands) = true;
    }
    return true;
  }

  constexpr bool accept_clause() {
    const bool reduction = cursor_.accept("reduction={");
    const bool whole = !reduction && cursor_.accept("need_replication={");
    const bool free = !reduction && !whole && extended_ && cursor_.accept("free={");
    const bool order = !reduction && !whole && !free && extended_ && cursor_.accept("order={");
    if (!reduction && !whole && !free && !order) return fail(Kind::after_result);
    while (!cursor_.accept("}")) {
      if (!cursor_.next_is_letter()) return fail(Kind::clause);
      const std::string_view name = cursor_.word();
      if (extended_) cursor_.accept("*");
      const std::size_t number = find(name);
      if (number == rule_->num_names) return fail(Kind::unknown_name, name);
      if (order) {
        if (num_ordered_ == kFactorCountMax) return fail(Kind::order);
        rule_->order[num_ordered_++] = static_cast<std::uint8_t>(number);
      } else if (free) {
        free_[number] = true;
      } else {
        FactorType& type = rule_->names[number].type;
        const FactorType wanted = reduction ? FactorType::reduction : FactorType::need_replication;
        if (type != FactorType::pass_through && type != wanted) {
          return fail(Kind::held_and_summed, name);
        }
        type = wanted;
      }
    }
    return true;
  }

  /// Orders the names as in the text, or as in the order clause, which must have each name once.
  constexpr RuleFault order_names() {
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < rule_->num_names; ++i) {
      if (num_ordered_ == 0) rule_->order[i] = static_cast<std::uint8_t>(i);
      seen |= std::uint64_t{1} << rule_->order[i];
    }
    const bool counts = num_ordered_ == 0 || num_ordered_ == rule_->num_names;
    const bool all = seen == (std::uint64_t{1} << rule_->num_names) - 1;
    return counts && all ? RuleFault{} : refuse(Kind::order);
  }

  RuleCursor cursor_;
  bool extended_;
  RuleText* rule_ = nullptr;
  std::array<bool, kFactorCountMax> free_{};
  std::size_t num_ordered_ = 0;
  RuleFault fault_{};
};

/// Returns the rule of one of weft's own ops. If the text is wrong, the call doesn't compile.
consteval RuleText own_rule(std::string_view text) {
  RuleText rule;
  RuleReader reader(text, true);
  if (reader.read(rule) || reader.finish()) throw "no sharding rule: see rule_text.hpp";
  return rule;
}

}  // namespace weft
