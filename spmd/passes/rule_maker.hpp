#pragma once
/// What the factor rules are made with. For factors*.cpp.

#include <cstdint>
#include <utility>

#include <weft/spmd/passes/factors.hpp>

namespace weft {

/// A rule under construction.
class RuleMaker {
 public:
  void add_tensor(const Shape& shape) {
    rule_.dims.emplace_back(static_cast<std::size_t>(shape.size()));
  }
  /// Its number, below kFactorCountMax.
  int add_factor(std::int64_t size, FactorType type = FactorType::pass_through,
                 ReduceKind reduce_kind = ReduceKind::add) {
    WEFT_CHECK(rule_.factors.size() < kFactorCountMax, rule_.factors.size());
    rule_.factors.push_back({size, type, reduce_kind});
    return static_cast<int>(rule_.factors.size()) - 1;
  }
  void put(std::size_t tensor, std::int64_t dim, int factor) {
    rule_.dims[tensor][static_cast<std::size_t>(dim)].push_back(static_cast<std::uint8_t>(factor));
  }
  FactorRule take(bool elementwise) {
    rule_.elementwise = elementwise;
    return std::move(rule_);
  }

 private:
  FactorRule rule_;
};

/// Both shapes are walked with running products. While the products are equal, the gcd of what is
/// left of the two current dims is a factor of both; if it is 1, each side has factors of its own
/// until the products meet again.
FactorRule reshape_rule(const Shape& from, const Shape& to);

/// Of a custom_call, as its target says.
FactorRule custom_rule(const Program& program, OpId op);

/// Of softmax .. attention_grad: rows pass through, and what a row is made of isn't cut.
FactorRule composite_rule(const Program& program, OpId op);

}  // namespace weft
