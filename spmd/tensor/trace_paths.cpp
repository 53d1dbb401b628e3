// Implements the part of Trace that finds the recordings through which a gradient flows.

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

#include <weft/tensor/error.hpp>

#include "spmd/tensor/trace.hpp"

namespace weft {
namespace {

/// Follows a gradient back through the recordings of a step to the requested tensors. This takes
/// several recordings, because each one reads values that earlier recordings made.
class Crossing {
 public:
  Crossing(std::span<const NodePtr> wrt, std::uint64_t loop, std::uint64_t step)
      : wrt_(wrt), loop_(loop), step_(step) {}

  /// Notes that the gradient flows to the present value of the node's tensor.
  void reach(const NodePtr& node) { reached_.insert(node.get()); }
  /// Continues the search in the recording that made the tensor. `user` is the number of the
  /// recording that reads the tensor; 0 is the present trace.
  void follow(const TensorNode& node, std::uint64_t user) {
    Recording* origin = node.origin.get();
    if (origin == nullptr || origin->loop != loop_ || origin->step != step_) return;
    if (node.is_state() && !node.was_assigned) return;
    Visit& visit = visits_[origin->number];
    visit.recording = origin;
    visit.values.push_back(node.origin_value);
    visit.users.push_back(user);
  }
  /// Follows the gradient through all recordings. Must be called after it was followed through the
  /// present trace.
  void follow_all() {
    for (auto at = visits_.rbegin(); at != visits_.rend(); ++at) look_into(at->second);
    for (const auto& [number, visit] : visits_) {
      if (!visit.is_crossed) continue;
      crossed_.push_back(visit.recording);
      for (const std::uint64_t user : visit.users) {
        if (user != 0) visits_[user].is_crossed = true;
      }
    }
  }

  /// Returns the recordings that the gradient flows through, in their order.
  const std::vector<const Recording*>& crossed() const { return crossed_; }
  /// Returns a requested tensor if the gradient reaches only an earlier value of it, and the
  /// recording that reads this value; null if there is no such tensor.
  std::pair<const TensorNode*, const Recording*> outdated() const {
    for (const auto& [node, recording] : outdated_) {
      if (!reached_.contains(node)) return {node, recording};
    }
    return {};
  }

 private:
  struct Visit {
    const Recording* recording = nullptr;
    std::vector<ValueId> values{};       // values at which the gradient enters
    std::vector<std::uint64_t> users{};  // numbers of the recordings that read the values
    bool is_crossed = false;
  };

  NodePtr asked_for(const std::weak_ptr<TensorNode>& weak) const {
    NodePtr node = weak.lock();
    return node != nullptr && std::ranges::find(wrt_, node) != wrt_.end() ? node : nullptr;
  }

  void look_into(Visit& visit) {
    const Recording& recording = *visit.recording;
    visit.is_crossed = recording.is_dropped;
    if (recording.is_dropped) return;
    const GradientPaths paths(recording.program, visit.values);
    for (std::size_t i = 0; i < recording.inputs.size(); ++i) {
      if (!paths.reached[recording.program.inputs[i].value]) continue;
      const auto& [weak, then] = recording.inputs[i];
      if (const NodePtr node = asked_for(weak)) {
        if (node->storage == then->storage) {
          visit.is_crossed = true;
          reach(node);
        } else {
          outdated_.emplace_back(node.get(), &recording);
        }
      }
      follow(*then, recording.number);
    }
    for (const std::weak_ptr<TensorNode>& weak : recording.made) {
      const NodePtr node = asked_for(weak);
      if (node == nullptr || node->origin.get() != &recording) continue;
      if (paths.reached[node->origin_value]) reach(node);
      // The recording is needed only if the gradient flows through one of its ops that reads the
      // tensor.
      if (paths.below[node->origin_value]) visit.is_crossed = true;
    }
  }

  std::span<const NodePtr> wrt_;
  std::uint64_t loop_;
  std::uint64_t step_;
  std::map<std::uint64_t, Visit> visits_;
  std::unordered_set<const TensorNode*> reached_;
  std::vector<std::pair<const TensorNode*, const Recording*>> outdated_;
  std::vector<const Recording*> crossed_;
};

/// Returns the line at which the tensor got its present value; "" if it isn't known.
std::string place_of_value(const TensorNode& node) {
  const Recording* origin = node.origin.get();
  if (origin == nullptr || origin->is_dropped) return "";
  const OpId op = origin->program.defining_op(node.origin_value);
  return op == kNoId ? "" : " at " + origin->program.loc(op);
}

}  // namespace

void Trace::refuse(const std::string& why) const {
  fail(Errc::invalid_argument, "{}: {} (at {})", site_->function, why, file_line(site_->loc));
}

bool Trace::is_differentiable(const TensorNode& node) const {
  const bool is_recorded = node.trace == serial_;
  if (is_recorded && (node.input == kNoId || is_pending(node))) return true;
  const Recording* origin = node.origin.get();
  return origin != nullptr && origin->loop == id_ && origin->step == runtime_->step();
}

/// Returns the number of the first recording through which a gradient of the loss flows to one of
/// `wrt`; 0 if there is none.
std::uint64_t Trace::first_crossed(const NodePtr& loss, std::span<const NodePtr> wrt) const {
  Crossing crossing(wrt, id_, runtime_->step());
  if (loss->trace == serial_) {
    const GradientPaths paths(program_, {&loss->value, 1});
    for (const NodePtr& node : wrt) {
      if (node->trace == serial_ && paths.reached[node->value]) crossing.reach(node);
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (paths.reached[program_.inputs[i].value]) crossing.follow(*inputs_[i], 0);
    }
  } else {
    crossing.follow(*loss, 0);
  }
  crossing.follow_all();
  if (const auto& [node, recording] = crossing.outdated(); node != nullptr) {
    refuse(
        fmt::format("the loss depends on the value of {} before it was assigned{}, and was "
                    "computed for the read at {}: take the gradient before the assignment",
                    node->label(), place_of_value(*node), file_line(recording->read)));
  }
  for (const Recording* recording : crossing.crossed()) {
    const std::string read = file_line(recording->read);
    if (recording->is_dropped) {
      refuse(
          fmt::format("the gradient depends on values that were computed for the read at {}, but "
                      "later reads in this step keep more than {} MiB, so they were dropped: take "
                      "the gradient earlier, or call sync() in between",
                      read, Recordings::kBytesMax >> 20));
    }
    if (recording->again_in != 0) {
      refuse(
          fmt::format("the gradient depends on values that were computed for the read at {} from a "
                      "parameter or other state that the same run has overwritten: take the "
                      "gradient before the assignment, or read after the gradient",
                      read));
    }
  }
  return crossing.crossed().empty() ? 0 : crossing.crossed().front()->number;
}

void Trace::record_again(const NodePtr& loss, std::span<const NodePtr> wrt) {
  // A gradient through overwritten state is found only after all other recordings are recorded
  // again.
  for (std::uint64_t first = 0; (first = first_crossed(loss, wrt)) != 0;) take_back(first);
  if (loss->trace != serial_) return;
  const GradientPaths paths(program_, {&loss->value, 1});
  for (const NodePtr& node : wrt) {
    if (!is_pending(*node) || node->stored == kNoId) continue;
    if (!paths.reached[node->stored] || paths.reached[node->value]) continue;
    const OpId op = program_.defining_op(node->value);
    refuse(
        fmt::format("the loss depends on the value of {} before it was assigned{}: take the "
                    "gradient before the assignment",
                    node->label(), op == kNoId ? "" : " at " + program_.loc(op)));
  }
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
