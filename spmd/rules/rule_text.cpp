#include "spmd/rules/rule_text.hpp"

namespace weft {
namespace {

/// Returns the number of dims for which each name stands. A name with `*` stands for all remaining
/// dims of a tensor once the counts of the tensor's other names are known.
std::array<int, kFactorCountMax> count_dims(const RuleText& text,
                                            std::span<const Shape* const> tensors) {
  std::array<int, kFactorCountMax> counts{};
  for (std::size_t name = 0; name < text.num_names; ++name) {
    counts[name] = text.names[name].any_count ? -1 : 1;
  }
  for (int round = 0; round < 2; ++round) {
    for (std::size_t tensor = 0; tensor < text.num_tensors; ++tensor) {
      int left = tensors[tensor]->size();
      int unknown = 0;
      std::size_t last_unknown = 0;
      for (const std::size_t name : text.tensors[tensor]) {
        if (counts[name] >= 0) {
          left -= counts[name];
        } else {
          ++unknown;
          last_unknown = name;
        }
      }
      if (unknown == 1) counts[last_unknown] = left;
    }
  }
  return counts;
}

}  // namespace

FactorRule to_factor_rule(const RuleText& text, std::span<const Shape* const> tensors, bool adds) {
  WEFT_CHECK(text.num_tensors == tensors.size(), text.num_tensors, tensors.size());
  const auto counts = count_dims(text, tensors);
  RuleMaker maker;
  for (const Shape* shape : tensors) maker.add_tensor(*shape);
  for (std::size_t i = 0; i < text.num_names; ++i) {
    const std::size_t name = text.order[i];
    FactorType type = text.names[name].type;
    if (type == FactorType::reduction && !adds) type = FactorType::need_replication;
    for (int k = 0; k < counts[name]; ++k) {
      int factor = -1;
      for (std::size_t tensor = 0; tensor < text.num_tensors; ++tensor) {
        int dim = 0;
        for (const std::size_t other : text.tensors[tensor]) {
          if (other == name) {
            if (factor < 0) factor = maker.add_factor((*tensors[tensor])[dim + k], type);
            maker.put(tensor, dim + k, factor);
          }
          dim += counts[other];
        }
      }
    }
  }
  return maker.take();
}

}  // namespace weft
