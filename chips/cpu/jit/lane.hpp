#pragma once
/// Lane: a node of a graph, with which C++ code can compute as with a number. The steps of
/// float_steps.hpp exist for lanes too, and append nodes. So do the functions of math.hpp, which
/// consist of such steps.

#include <bit>
#include <cstdint>

#include "chips/cpu/jit/graph.hpp"
#include "chips/cpu/loops/float_steps.hpp"

namespace weft::jit {

class Lane {
 public:
  Lane() : Lane(0.0F) {}
  /// Makes a constant. When it is combined with a lane of a graph, it becomes a node of this graph.
  explicit Lane(float value) : bits_(std::bit_cast<std::uint32_t>(value)) {}
  static Lane of_bits(std::uint32_t bits) { return Lane(std::bit_cast<float>(bits)); }
  Lane(Graph& graph, int number) : graph_(&graph), number_(number) {}

  /// Appends a node. At least one operand must be a node of a graph instead of a constant.
  static Lane make(NodeKind kind, Lane a, Lane b = {}, Lane c = {}, std::uint32_t bits = 0,
                   int operands = 2) {
    Graph& graph = *(a.graph_ != nullptr ? a.graph_ : b.graph_ != nullptr ? b.graph_ : c.graph_);
    Node node{.kind = kind, .bits = bits};
    const std::array<Lane, 3> given{a, b, c};
    for (std::size_t i = 0; i < static_cast<std::size_t>(operands); ++i) {
      node.operands[i] = given[i].number_in(graph);
    }
    return {graph, graph.put(node)};
  }
  static Lane unary(NodeKind kind, Lane x, std::uint32_t bits = 0) {
    return make(kind, x, {}, {}, bits, 1);
  }

  int number_in(Graph& graph) const {
    return graph_ != nullptr ? number_ : graph.put({.kind = NodeKind::constant, .bits = bits_});
  }
  bool uses_avx512() const { return graph_->vectors == Vectors::avx512; }
  /// Returns whether the lane is a constant, whose bits bits() returns.
  bool is_constant() const {
    return graph_ == nullptr ||
           graph_->nodes[static_cast<std::size_t>(number_)].kind == NodeKind::constant;
  }
  std::uint32_t bits() const {
    return graph_ == nullptr ? bits_ : graph_->nodes[static_cast<std::size_t>(number_)].bits;
  }

 private:
  Graph* graph_ = nullptr;
  int number_ = 0;
  std::uint32_t bits_ = 0;
};

inline Lane operator+(Lane a, Lane b) { return Lane::make(NodeKind::add, a, b); }
inline Lane operator-(Lane a, Lane b) { return Lane::make(NodeKind::subtract, a, b); }
inline Lane operator*(Lane a, Lane b) { return Lane::make(NodeKind::multiply, a, b); }
inline Lane operator/(Lane a, Lane b) { return Lane::make(NodeKind::divide, a, b); }
inline Lane operator-(Lane x) {
  return Lane::make(NodeKind::bit_xor, x, Lane::of_bits(0x80000000U));
}

inline Lane fused(Lane a, Lane b, Lane c) { return Lane::make(NodeKind::fused, a, b, c, 0, 3); }
inline Lane at_most(Lane top, Lane x) { return Lane::make(NodeKind::min, top, x); }
inline Lane at_least(Lane bottom, Lane x) { return Lane::make(NodeKind::max, bottom, x); }

/// Comparisons with their numbers in x86. All except not_equal are false for NaN.
enum Predicate : std::uint32_t { equal = 0, less = 1, less_equal = 2, not_equal = 4 };
inline Lane compared(Lane a, Lane b, Predicate predicate) {
  return Lane::make(NodeKind::compare, a, b, {}, predicate);
}
inline Lane blend(Lane mask, Lane then, Lane otherwise) {
  return Lane::make(NodeKind::blend, mask, otherwise, then, 0, 3);
}
inline Lane where_less(Lane a, Lane b, Lane then, Lane otherwise) {
  return blend(compared(a, b, less), then, otherwise);
}
inline Lane where_equal(Lane a, Lane b, Lane then, Lane otherwise) {
  return blend(compared(a, b, equal), then, otherwise);
}

inline Lane and_bits(Lane x, std::uint32_t bits) {
  return Lane::make(NodeKind::bit_and, x, Lane::of_bits(bits));
}
inline Lane or_bits(Lane x, std::uint32_t bits) {
  return Lane::make(NodeKind::bit_or, x, Lane::of_bits(bits));
}
inline Lane add_int(Lane x, std::uint32_t number) {
  return Lane::make(NodeKind::int_add, x, Lane::of_bits(number));
}
inline Lane shifted(NodeKind kind, Lane x, std::uint32_t by) { return Lane::unary(kind, x, by); }

inline Lane magnitude(Lane x) { return and_bits(x, 0x7fffffffU); }
inline Lane with_sign_of(Lane sign, Lane x) {
  constexpr std::uint32_t kSign = 0x80000000U;
  if (sign.uses_avx512()) {
    return Lane::make(NodeKind::bits_where, x, sign, Lane::of_bits(kSign), 0, 3);
  }
  const Lane rest = x.is_constant() ? Lane::of_bits(x.bits() & ~kSign) : magnitude(x);
  return Lane::make(NodeKind::bit_or, and_bits(sign, kSign), rest);
}

// Steps of float_steps.hpp follow. AVX-512 has instructions for some of them; without it, they are
// computed as for a float.

inline Lane times_power_of_two(Lane x, Lane n) {
  if (n.uses_avx512()) return Lane::make(NodeKind::times_power_of_two, x, n);
  const Lane all =
      add_int(n + Lane(kernels::kRound), 0U - std::bit_cast<std::uint32_t>(kernels::kRound));
  const Lane half = shifted(NodeKind::shift_right_signed, all, 1);
  const auto power = [](Lane exponent) {
    return shifted(NodeKind::shift_left, add_int(exponent, 127), 23);
  };
  return x * power(half) * power(Lane::make(NodeKind::int_subtract, all, half));
}

/// Returns the bits of x, or those of x * 2^23 if x is subnormal.
inline Lane normal(Lane x) {
  return where_less(x, Lane::of_bits(0x00800000U), x * Lane(8388608.0F), x);
}
inline Lane exponent(Lane x) {
  if (x.uses_avx512()) return Lane::unary(NodeKind::exponent, x);
  const Lane bias =
      where_less(x, Lane::of_bits(0x00800000U), Lane::of_bits(127 + 23), Lane::of_bits(127));
  const Lane biased = shifted(NodeKind::shift_right, normal(x), 23);
  return Lane::unary(NodeKind::to_float, Lane::make(NodeKind::int_subtract, biased, bias));
}
inline Lane significand(Lane x) {
  if (x.uses_avx512()) return Lane::unary(NodeKind::significand, x);
  return or_bits(and_bits(normal(x), 0x7fffffU), 0x3f800000U);
}

}  // namespace weft::jit
