#include <weft/spmd/program/program.hpp>

#include <algorithm>

namespace weft {

std::string_view to_string(InputKind kind) noexcept {
  switch (kind) {
    case InputKind::param: return "param";
    case InputKind::opt_state: return "opt_state";
    case InputKind::data: return "data";
    case InputKind::runtime_scalar: return "runtime_scalar";
  }
  return "unknown";
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
  // Copies, because the spans may lie in the arrays that grow here (an op made from another one).
  const std::vector<ValueId> new_operands(op_operands.begin(), op_operands.end());
  const std::vector<std::int64_t> new_attrs(op_attrs.begin(), op_attrs.end());
  const ValueId value = num_values();
  value_types.push_back(result_type);
  value_ops.push_back(num_ops());
  op_kinds.push_back(op_kind);
  operands.insert(operands.end(), new_operands.begin(), new_operands.end());
  operand_begin.push_back(static_cast<std::uint32_t>(operands.size()));
  results.push_back(value);
  attrs.insert(attrs.end(), new_attrs.begin(), new_attrs.end());
  attr_begin.push_back(static_cast<std::uint32_t>(attrs.size()));
  op_locs.push_back(loc_id);
  return value;
}

void Program::add_output(ValueId value, std::string name, const Sharding& sharding,
                         std::int32_t updates) {
  outputs.push_back({value, std::move(name), sharding, updates});
}

LocId Program::intern_loc(std::string_view text) {
  // From the back: the line of the op before is the likeliest.
  const auto found = std::find(locs.rbegin(), locs.rend(), text);
  if (found != locs.rend()) return static_cast<LocId>(locs.rend() - found - 1);
  locs.emplace_back(text);
  return static_cast<LocId>(locs.size() - 1);
}

}  // namespace weft
