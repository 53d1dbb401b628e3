#include "spmd/tensor/recording.hpp"

#include <algorithm>
#include <utility>

#include "spmd/control/loops.hpp"
#include "spmd/ops/row.hpp"

namespace weft {
namespace {

/// Returns the op's attributes, in which indices into side tables of `from` are replaced by indices
/// into side tables of `to`.
std::vector<std::int64_t> copied_attrs(const Program& from, OpId op, Program& to) {
  const auto old = from.op_attrs(op);
  std::vector<std::int64_t> attrs(old.begin(), old.end());
  switch (table_of(from.kind(op))) {
    case Form::elements: {
      const auto begin = from.const_pool.begin() + old[0];
      to.const_pool.resize((to.const_pool.size() + 7) / 8 * 8);
      attrs[0] = static_cast<std::int64_t>(to.const_pool.size());
      to.const_pool.insert(to.const_pool.end(), begin, begin + old[1]);
      break;
    }
    case Form::constraint:
      attrs[0] = static_cast<std::int64_t>(to.constraints.size());
      to.constraints.push_back(from.constraints[static_cast<std::size_t>(old[0])]);
      break;
    case Form::target: attrs[0] = to.intern_target(from.custom_target(op)); break;
    default: break;
  }
  return attrs;
}

}  // namespace

/// Destroys a chain of recordings in a loop, because nested destructor calls could exhaust the
/// stack.
Recording::~Recording() {
  std::vector<std::shared_ptr<Recording>> open;
  const auto take_origins = [&](Recording& recording) {
    for (Input& input : recording.inputs) {
      if (input.then.use_count() == 1) open.push_back(std::move(input.then->origin));
    }
    recording.inputs.clear();
  };
  take_origins(*this);
  while (!open.empty()) {
    const std::shared_ptr<Recording> last = std::move(open.back());
    open.pop_back();
    if (last.use_count() == 1) take_origins(*last);
  }
}

void Recording::drop() {
  is_dropped = true;
  program = {};
  inputs.clear();
  made.clear();
  regions.clear();
}

void Recordings::add(const std::shared_ptr<Recording>& recording, std::size_t bytes_max) {
  if (all_.size() >= 2 * pruned_) {
    std::erase_if(all_, [](const std::weak_ptr<Recording>& kept) { return kept.expired(); });
    pruned_ = std::max(all_.size(), std::size_t{8});
  }
  std::size_t bytes = 0;
  for (auto kept = all_.rbegin(); kept != all_.rend(); ++kept) {
    const std::shared_ptr<Recording> before = kept->lock();
    if (before == nullptr || before->is_dropped) continue;
    bytes += before->bytes;
    if (bytes > bytes_max) before->drop();
  }
  all_.push_back(recording);
}

std::vector<std::shared_ptr<Recording>> Recordings::since(std::uint64_t number) const {
  std::vector<std::shared_ptr<Recording>> kept;
  for (const std::weak_ptr<Recording>& weak : all_) {
    const std::shared_ptr<Recording> recording = weak.lock();
    if (recording == nullptr || recording->is_dropped || recording->number < number) continue;
    kept.push_back(recording);
  }
  return kept;
}

void Recordings::forget() {
  // The list from since() keeps all recordings alive until the last recording is dropped.
  for (const std::shared_ptr<Recording>& recording : since(0)) recording->drop();
  all_.clear();
  pruned_ = 0;
}

GradientPaths::GradientPaths(const Program& program, std::span<const ValueId> values)
    : reached(program.num_values(), false), below(program.num_values(), false) {
  // A carry has its `next`'s value from the previous iteration, so a gradient flows from the carry
  // to that value.
  std::vector<ValueId> next_of(program.num_values(), kNoId);
  for (OpId op = 0; op < program.num_ops(); ++op) {
    if (program.kind(op) != OpKind::next) continue;
    next_of[program.op_operands(op)[1]] = program.op_operands(op)[2];
  }
  std::vector<ValueId> open(values.begin(), values.end());
  while (!open.empty()) {
    const ValueId value = open.back();
    open.pop_back();
    if (reached[value]) continue;
    reached[value] = true;
    const OpId op = program.defining_op(value);
    if (op == kNoId || !has_gradient(program.kind(op))) continue;
    if (!is_floating(program.type(value).dtype)) continue;
    const auto operands = program.op_operands(op);
    open.insert(open.end(), operands.begin(), operands.end());
    if (next_of[value] != kNoId) open.push_back(next_of[value]);
    for (const ValueId operand : operands) below[operand] = true;
  }
}

std::vector<bool> missing_values(const Program& program, const std::vector<ValueId>& given) {
  std::vector<bool> missing(program.num_values(), false);
  bool any = false;
  for (const ProgramInput& input : program.inputs) {
    missing[input.value] = given[input.value] == kNoId;
    any = any || missing[input.value];
  }
  if (!any) return missing;
  const Loops ranges(program);
  const auto is_missing = [&](ValueId value) { return static_cast<bool>(missing[value]); };
  const auto leave_out = [&](const LoopRange& range) {
    bool changed = false;
    for (OpId op = range.begin; op < range.end; ++op) {
      const ValueId result = program.result(op);
      if (missing[result] || given[result] != kNoId) continue;
      missing[result] = changed = true;
    }
    return changed;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (OpId op = 0; op < program.num_ops(); ++op) {
      const ValueId result = program.result(op);
      if (given[result] != kNoId) continue;
      if (std::ranges::any_of(program.op_operands(op), is_missing)) missing[result] = true;
    }
    for (const LoopRange& range : ranges.ranges()) {
      const auto results = std::span(program.results).subspan(range.begin, range.end - range.begin);
      if (std::ranges::none_of(results, is_missing)) continue;
      changed = leave_out(range) || changed;
      if (range.other != kNoId) changed = leave_out(ranges[range.other]) || changed;
    }
  }
  return missing;
}

std::vector<OpId> append_ops(const Program& from, Program& to, std::vector<ValueId>& values) {
  const std::vector<bool> missing = missing_values(from, values);
  std::vector<LocId> locs(from.locs.size(), kNoId);
  std::vector<OpId> places;
  std::vector<ValueId> operands;
  for (OpId op = 0; op < from.num_ops(); ++op) {
    places.push_back(to.num_ops());
    const ValueId result = from.result(op);
    if (missing[result] || values[result] != kNoId) continue;
    operands.clear();
    for (const ValueId operand : from.op_operands(op)) operands.push_back(values[operand]);
    LocId& loc = locs[from.op_locs[op]];
    if (loc == kNoId) loc = to.intern_loc(from.loc(op));
    values[result] =
        to.add_op(from.kind(op), operands, copied_attrs(from, op, to), from.type(result), loc);
  }
  places.push_back(to.num_ops());
  return places;
}

}  // namespace weft
