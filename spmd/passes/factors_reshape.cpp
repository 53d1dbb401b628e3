#include <numeric>

#include <weft/spmd/passes/rule_maker.hpp>

namespace weft {
namespace {

/// Walks a shape's dims from the major one, each taken in pieces from its major side.
struct DimWalk {
  std::size_t tensor;
  const Shape& shape;
  int dim = 0;
  std::int64_t left = 1;  // of dim - 1, which is being taken

  /// Moves on to a dim with something left; false at the end.
  bool advance() {
    while (left == 1 && dim < shape.size()) left = shape[dim++];
    return left != 1;
  }
  void take(RuleMaker& rule, int factor, std::int64_t size) {
    rule.put(tensor, dim - 1, factor);
    left /= size;
  }
  /// Takes what is left of the dim as a factor that the other shape hasn't got.
  std::int64_t take_alone(RuleMaker& rule) {
    const std::int64_t size = left;
    take(rule, rule.add_factor(size, FactorType::need_replication), size);
    return size;
  }
};

}  // namespace

FactorRule reshape_rule(const Shape& from, const Shape& to) {
  RuleMaker rule;
  rule.add_tensor(from);
  rule.add_tensor(to);
  DimWalk in{0, from};
  DimWalk out{1, to};
  if (from.num_elements() == 0) {
    for (DimWalk* walk : {&in, &out}) {
      while (walk->dim < walk->shape.size()) {
        walk->left = walk->shape[walk->dim++];
        rule.put(walk->tensor, walk->dim - 1,
                 rule.add_factor(walk->left, FactorType::need_replication));
      }
    }
    return rule.take(true);
  }
  while (in.advance() && out.advance()) {
    if (const std::int64_t shared = std::gcd(in.left, out.left); shared > 1) {
      const int factor = rule.add_factor(shared);
      in.take(rule, factor, shared);
      out.take(rule, factor, shared);
      continue;
    }
    std::int64_t in_product = in.take_alone(rule);
    std::int64_t out_product = out.take_alone(rule);
    while (in_product != out_product) {
      const bool in_is_behind = in_product < out_product;
      DimWalk& behind = in_is_behind ? in : out;
      WEFT_CHECK(behind.advance(), from.to_string(), to.to_string());
      (in_is_behind ? in_product : out_product) *= behind.take_alone(rule);
    }
  }
  return rule.take(true);
}

}  // namespace weft
