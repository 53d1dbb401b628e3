// Implements the part of Trace that keeps recorded ops when the training loop reads a value in the
// middle of a step, and records them again for a gradient.

#include <algorithm>
#include <limits>
#include <utility>

#include "spmd/tensor/trace.hpp"

namespace weft {
namespace {

/// If a run updates state of kind `buffer`, such as running statistics, of at most this size, the
/// old value is kept too, so that ops that read it can be recorded again. Parameters, optimizer
/// state and larger buffers, such as caches of keys, are overwritten.
constexpr std::int64_t kKeptBufferBytes = 64 << 10;

/// The approximate memory of a program per value, in bytes on the host.
constexpr std::size_t kBytesPerValue = 64;

}  // namespace

/// Makes a recording of the ops that a run is about to execute. Called before the run, which may
/// overwrite the state that it updates. Returns null if no gradient can flow through the results.
std::shared_ptr<Recording> Trace::keep(const std::source_location& read) {
  const auto is_real = [](const NodePtr& node) { return is_floating(node->type.dtype); };
  if (std::ranges::none_of(outputs_, is_real)) return nullptr;
  auto kept = std::make_shared<Recording>();
  kept->read = read;
  kept->loop = id_;
  kept->step = runtime_->step();
  kept->number = ++recording_count_;
  kept->bytes = kBytesPerValue * program_.num_values();
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const NodePtr& node = inputs_[i];
    auto then = std::make_shared<TensorNode>(*node);
    if (scalars_[i] != nullptr) then->storage = scalars_[i];
    const bool is_small = node->kind == InputKind::buffer && node->type.bytes() <= kKeptBufferBytes;
    if (is_pending(*node) && !is_small) then->storage = std::monostate{};
    if (node->is_state() && !node->was_assigned) then->origin.reset();
    if (!node->is_state()) kept->bytes += static_cast<std::size_t>(node->type.bytes());
    kept->inputs.push_back({node, std::move(then)});
  }
  return kept;
}

/// Completes the recording after the run, with the tensors that the run made.
void Trace::keep_made(const std::shared_ptr<Recording>& kept) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i]->kind == InputKind::runtime_scalar || is_pending(*inputs_[i])) continue;
    kept->inputs[i].then->storage = inputs_[i]->storage;  // the run put the input on the chips
  }
  const auto add = [&](const NodePtr& node) {
    node->origin = kept;
    node->origin_value = node->value;
    kept->made.push_back(node);
  };
  for (const NodePtr& node : outputs_) add(node);
  for (const std::weak_ptr<TensorNode>& weak : taken_back_) {
    const NodePtr node = weak.lock();
    if (node != nullptr && node->trace == serial_ && !is_pending(*node)) add(node);
  }
  regions_.remat.end(program_.num_ops());
  kept->regions = std::move(regions_);
  kept->program = std::move(program_);
  // In an eager job, each op has a recording of its own, and a gradient needs them all, so all are
  // kept.
  constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
  recordings_.add(kept, modes_.is_eager ? kNoLimit : Recordings::kBytesMax);
}

void Trace::take_back(std::uint64_t first) {
  std::vector<std::shared_ptr<Recording>> all = recordings_.since(first);
  std::erase_if(all, [](const auto& kept) { return kept->again_in != 0; });
  const std::string read = file_line(all.front()->read);
  if (!regions_.loops.open().empty() || !regions_.shard_maps.open().empty()) {
    refuse(
        fmt::format("the gradient depends on values that were computed for the read at {}, outside "
                    "of the function of a loop, cond() or shard_map() that is being recorded: take "
                    "the gradient before the read",
                    read));
  }
  if (!modes_.is_eager) watch_.computed_again(all.front()->read, site_->loc);
  // Tensors made in the function of a shard_map have no value after the end of the function.
  for (std::size_t i = 0; i < recorded_; ++i) {
    if (builder_.manual(nodes_[i]->value).manual != 0) nodes_[i]->trace = 0;
  }
  Recording present;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    auto then = std::make_shared<TensorNode>(*inputs_[i]);
    if (scalars_[i] != nullptr) then->storage = scalars_[i];
    present.inputs.push_back({inputs_[i], std::move(then)});
  }
  present.made = std::move(taken_back_);
  present.regions = std::move(regions_);
  present.program = std::move(program_);
  const std::uint64_t before = serial_;
  const std::vector<NodePtr> alive = std::move(inputs_);
  begin();
  for (const std::shared_ptr<Recording>& kept : all) append(*kept);
  append_present(present, before);
  builder_ = Builder(program_, runtime_->mesh());
  enter(*site_);
}

void Trace::append(Recording& kept) {
  Appended appended{.values = std::vector<ValueId>(kept.program.num_values(), kNoId), .places = {}};
  for (std::size_t i = 0; i < kept.inputs.size(); ++i) {
    appended.values[kept.program.inputs[i].value] = input_again(kept.inputs[i]);
  }
  std::vector<NodePtr> made;
  for (const std::weak_ptr<TensorNode>& weak : kept.made) {
    if (NodePtr node = weak.lock(); node != nullptr && node->origin.get() == &kept) {
      made.push_back(std::move(node));
    }
  }
  // Values that depend on overwritten state become inputs, unless they can be computed from earlier
  // inputs.
  std::ranges::sort(made, {}, &TensorNode::origin_value);
  std::vector<bool> missing = missing_values(kept.program, appended.values);
  std::erase_if(made, [&](const NodePtr& node) {
    const ValueId value = node->origin_value;
    if (!missing[value]) return false;
    appended.values[value] = value_of(node, site_->loc);
    missing = missing_values(kept.program, appended.values);
    return true;
  });
  appended.places = append_ops(kept.program, program_, appended.values);
  regions_.append(kept.regions, appended);
  for (const NodePtr& node : made) {
    node->origin.reset();
    node->trace = serial_;
    node->value = node->stored = appended.values[node->origin_value];
    node->input = kNoId;
    taken_back_.push_back(node);
  }
  kept.again_in = serial_;
  kept.again = std::move(appended.values);
}

/// Appends the ops recorded since the last run again. `before` is the number of the program in
/// which they were recorded.
void Trace::append_present(const Recording& present, std::uint64_t before) {
  const Program& program = present.program;
  Appended appended{.values = std::vector<ValueId>(program.num_values(), kNoId), .places = {}};
  for (std::size_t i = 0; i < present.inputs.size(); ++i) {
    appended.values[program.inputs[i].value] = input_again(present.inputs[i]);
  }
  appended.places = append_ops(program, program_, appended.values);
  regions_.append(present.regions, appended);
  for (std::size_t i = 0; i < present.inputs.size(); ++i) {
    const auto& [weak, then] = present.inputs[i];
    if (then->trace != before || then->value == then->stored) continue;
    const NodePtr node = weak.lock();
    if (node->input == kNoId) add_input(node, site_->loc);
    node->value = appended.values[then->value];
  }
  for (const std::weak_ptr<TensorNode>& weak : present.made) {
    const NodePtr node = weak.lock();
    if (node == nullptr || node->trace != before || node->input != kNoId) continue;
    node->trace = serial_;
    node->value = node->stored = appended.values[node->value];
    taken_back_.push_back(node);
  }
  for (std::size_t i = 0; i < recorded_; ++i) {
    if (nodes_[i]->trace != before) continue;
    nodes_[i]->trace = serial_;
    nodes_[i]->value = appended.values[nodes_[i]->value];
  }
}

/// Returns the value in the present program for an input of a recording; kNoId if the input was
/// overwritten.
ValueId Trace::input_again(const Recording::Input& input) {
  const TensorNode& then = *input.then;
  const NodePtr node = input.node.lock();
  const bool has_value = !std::holds_alternative<std::monostate>(then.storage);
  if (has_value && node != nullptr && node->storage == then.storage) {
    return value_of(node, site_->loc);
  }
  const Recording* origin = then.origin.get();
  if (origin != nullptr && origin->again_in == serial_ &&
      origin->again[then.origin_value] != kNoId) {
    return origin->again[then.origin_value];
  }
  if (!has_value) return kNoId;
  // The state has another value by now, so its former value becomes an input of kind `data`.
  auto stand_in = std::make_shared<TensorNode>(then);
  if (stand_in->is_state()) {
    stand_in->kind = InputKind::data;
    stand_in->name.clear();
  }
  return value_of(stand_in, site_->loc);
}

}  // namespace weft
