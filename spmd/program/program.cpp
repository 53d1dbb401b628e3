#include "spmd/program/program.hpp"

#include <algorithm>

namespace weft {
namespace {

/// Appends `list` to `to`. `list` may be a part of `to` (if an op is made from another op), so the
/// memory must not move while `list` is read.
template <typename T>
void append(std::vector<T>& to, std::span<const T> list) {
  if (to.capacity() - to.size() < list.size()) {
    const std::vector<T> copy(list.begin(), list.end());
    to.reserve(2 * (to.size() + copy.size()));
    return append(to, std::span<const T>(copy));
  }
  for (const T& element : list) to.push_back(element);
}

}  // namespace

std::string_view to_string(InputKind kind) noexcept {
  switch (kind) {
    case InputKind::param: return "param";
    case InputKind::opt_state: return "opt_state";
    case InputKind::data: return "data";
    case InputKind::runtime_scalar: return "runtime_scalar";
    case InputKind::buffer: return "buffer";
  }
  return "unknown";
}

bool Program::is_fill(OpId op) const {
  switch (kind(op)) {
    case OpKind::constant: return op_attrs(op)[1] == byte_size(type(result(op)).dtype);
    case OpKind::broadcast_in_dim: return shape(op_operands(op)[0]).size() == 0;
    default: return false;
  }
}

ValueId Program::add_input(TensorType type, InputKind input_kind, std::string name,
                           const Sharding& sharding, LocId loc_id) {
  const ValueId value = num_values();
  value_types.push_back(type);
  value_ops.push_back(kNoId);
  inputs.push_back({value, input_kind, std::move(name), sharding, loc_id});
  return value;
}

ValueId Program::add_op(OpKind op_kind, std::span<const ValueId> op_operands,
                        std::span<const std::int64_t> op_attrs, TensorType result_type,
                        LocId loc_id) {
  const ValueId value = num_values();
  value_types.push_back(result_type);
  value_ops.push_back(num_ops());
  op_kinds.push_back(op_kind);
  append(operands, op_operands);
  operand_begin.push_back(static_cast<std::uint32_t>(operands.size()));
  results.push_back(value);
  append(attrs, op_attrs);
  attr_begin.push_back(static_cast<std::uint32_t>(attrs.size()));
  op_locs.push_back(loc_id);
  return value;
}

void Program::add_output(ValueId value, std::string name, const Sharding& sharding,
                         std::int32_t updates) {
  outputs.push_back({value, std::move(name), sharding, updates});
}

std::int64_t Program::intern_target(const CustomTarget& target) {
  const auto found = std::ranges::find(custom_targets, target);
  const std::int64_t index = found - custom_targets.begin();
  if (found == custom_targets.end()) custom_targets.push_back(target);
  return index;
}

LocId Program::intern_loc(std::string_view text) {
  // The search begins at the end because the line of the previous op is the most likely one.
  const auto found = std::find(locs.rbegin(), locs.rend(), text);
  if (found != locs.rend()) return static_cast<LocId>(locs.rend() - found - 1);
  locs.emplace_back(text);
  return static_cast<LocId>(locs.size() - 1);
}

void Program::reserve(const Program& other) {
  value_types.reserve(other.value_types.size());
  value_ops.reserve(other.value_ops.size());
  op_kinds.reserve(other.op_kinds.size());
  operand_begin.reserve(other.operand_begin.size());
  operands.reserve(other.operands.size());
  results.reserve(other.results.size());
  attr_begin.reserve(other.attr_begin.size());
  attrs.reserve(other.attrs.size());
  op_locs.reserve(other.op_locs.size());
}

void Program::begin_from(const Program& other) {
  const_pool = other.const_pool;
  constraints = other.constraints;
  custom_targets = other.custom_targets;
  locs = other.locs;
  reserve(other);
}

void Program::clear() {
  value_types.clear();
  value_ops.clear();
  op_kinds.clear();
  operand_begin.assign(1, 0);
  operands.clear();
  results.clear();
  attr_begin.assign(1, 0);
  attrs.clear();
  op_locs.clear();
  const_pool.clear();
  constraints.clear();
  custom_targets.clear();
  locs.assign(1, "");
  inputs.clear();
  outputs.clear();
}

}  // namespace weft
