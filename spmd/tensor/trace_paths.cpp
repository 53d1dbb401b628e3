// The part of Trace that follows values back to the values they are computed from.

#include <algorithm>

#include "spmd/ops/row.hpp"
#include "spmd/tensor/trace.hpp"

namespace weft {

bool Trace::carries_gradient(OpId op) const {
  return has_gradient(program_.kind(op)) && is_floating(program_.type(program_.result(op)).dtype);
}

/// The outputs are inputs of what is recorded next.
void Trace::note_cut(const std::source_location& loc) const {
  std::vector<NodePtr> input_of(program_.num_values());
  for (std::size_t i = 0; i < inputs_.size(); ++i) input_of[program_.inputs[i].value] = inputs_[i];
  for (const NodePtr& node : outputs_) {
    if (node->is_state() || !is_floating(node->type.dtype)) continue;
    node->cut = {loc, runtime_->step(), {}};
    auto& from = node->cut.from;
    std::vector<bool> seen(program_.num_values(), false);
    std::vector<ValueId> open{node->value};
    while (!open.empty()) {
      const ValueId value = open.back();
      open.pop_back();
      if (seen[value]) continue;
      seen[value] = true;
      if (const OpId op = program_.defining_op(value); op != kNoId) {
        if (!carries_gradient(op)) continue;
        const auto operands = program_.op_operands(op);
        open.insert(open.end(), operands.begin(), operands.end());
      } else if (const NodePtr& input = input_of[value]; input != nullptr) {
        from.push_back(input);
        if (input->cut.step != node->cut.step) continue;
        from.insert(from.end(), input->cut.from.begin(), input->cut.from.end());
      }
    }
    // Each once: what is read in a loop would list them more and more often.
    std::ranges::sort(from, std::owner_less<>());
    const auto same = [](const auto& a, const auto& b) {
      return !a.owner_before(b) && !b.owner_before(a);
    };
    from.erase(std::unique(from.begin(), from.end(), same), from.end());
  }
}

const TensorNode* Trace::cut_from(std::span<const NodePtr> wrt, ValueId loss) const {
  std::vector<bool> reached(program_.num_values(), false);
  reached[loss] = true;
  for (OpId op = program_.num_ops(); op-- > 0;) {
    if (!reached[program_.result(op)] || !carries_gradient(op)) continue;
    for (const ValueId operand : program_.op_operands(op)) reached[operand] = true;
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const TensorNode::Cut& cut = inputs_[i]->cut;
    if (!reached[program_.inputs[i].value] || cut.step != runtime_->step()) continue;
    for (const auto& from : cut.from) {
      if (std::ranges::find(wrt, from.lock()) != wrt.end()) return inputs_[i].get();
    }
  }
  return nullptr;
}

bool Trace::has_ignored(ValueId labels) const {
  if (std::ranges::none_of(inputs_, [](const NodePtr& node) { return node->has_ignored; }))
    return false;
  std::vector<ValueId> open{labels};
  std::vector<bool> seen(program_.num_values(), false);
  while (!open.empty()) {
    const ValueId value = open.back();
    open.pop_back();
    const DType dtype = program_.type(value).dtype;
    if (seen[value] || !is_signed_integer(dtype)) continue;
    seen[value] = true;
    if (const OpId op = program_.defining_op(value); op != kNoId) {
      const auto operands = program_.op_operands(op);
      open.insert(open.end(), operands.begin(), operands.end());
      continue;
    }
    const auto is_it = [&](const ProgramInput& input) { return input.value == value; };
    const auto input = std::ranges::find_if(program_.inputs, is_it) - program_.inputs.begin();
    if (inputs_[static_cast<std::size_t>(input)]->has_ignored) return true;
  }
  return false;
}

}  // namespace weft
