// Implements the part of Trace that reports, at the end of a training loop, the ops that the loop
// recorded and never ran.

#include <algorithm>

#include <weft/tensor/error.hpp>

#include "spmd/tensor/trace.hpp"

namespace weft {

void warn_of_unrun() {
  if (const Trace* trace = Trace::find_current()) trace->warn_of_unrun();
}

void Trace::warn_of_unrun() const {
  std::string lost;
  std::size_t others = 0;
  for (const NodePtr& node : inputs_) {
    if (!node->is_state() || !is_pending(*node)) continue;
    if (lost.empty()) {
      lost = fmt::format("the value of {} from {}", node->label(), file_line(node->recorded));
    } else {
      ++others;
    }
  }
  if (lost.empty() && recorded_ == 0) return;
  if (lost.empty()) {
    lost = fmt::format("the value from {}", file_line(nodes_[recorded_ - 1]->recorded));
    others = recorded_ - 1;
  }
  if (others > 0) lost += fmt::format(" and of {} more tensors", others);
  runtime_->warn(fmt::format(
      "the loop has returned at step {}, but the ops that it recorded after its last sync have not "
      "run: {} is lost, and these ops don't count as a step; end the step before the loop returns, "
      "by sync(), a weft::StepScope or a compiled function",
      runtime_->step(), lost));
}

}  // namespace weft
