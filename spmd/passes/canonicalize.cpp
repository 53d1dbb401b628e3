#include <weft/spmd/passes/canonicalize.hpp>

#include <algorithm>
#include <map>

namespace weft {
namespace {

class Canonicalizer {
 public:
  Canonicalizer(const Program& program, bool split_constants)
      : program_(program),
        split_constants_(split_constants),
        value_of_(program.num_values(), kNoId) {
    result_.locs = program.locs;
  }

  Program run() {
    for (const ProgramInput& input : program_.inputs) {
      value_of_[input.value] = result_.add_input(program_.type(input.value), input.kind, input.name,
                                                 input.sharding, input.loc);
    }
    const std::vector<bool> live = live_ops();
    for (OpId op = 0; op < program_.num_ops(); ++op) {
      const ValueId value = program_.result(op);
      if (live[op] && !made_per_use(value)) value_of_[value] = number(op);
    }
    for (const ProgramOutput& output : program_.outputs) {
      result_.add_output(use(output.value), output.name, output.sharding, output.updates);
    }
    return std::move(result_);
  }

 private:
  std::vector<bool> live_ops() const {
    std::vector<bool> live(program_.num_ops(), false);
    const auto mark = [&](ValueId value) {
      const OpId op = program_.defining_op(value);
      if (op != kNoId) live[op] = true;
    };
    for (const ProgramOutput& output : program_.outputs) mark(output.value);
    for (OpId op = program_.num_ops(); op-- > 0;) {
      if (live[op]) std::ranges::for_each(program_.op_operands(op), mark);
    }
    return live;
  }

  bool made_per_use(ValueId value) const {
    const OpId op = program_.defining_op(value);
    if (!split_constants_ || op == kNoId) return false;
    switch (program_.kind(op)) {
      case OpKind::constant:
      case OpKind::iota: return true;
      case OpKind::broadcast_in_dim: return program_.shape(program_.op_operands(op)[0]).size() == 0;
      default: return false;
    }
  }

  /// The new value that stands for one use of the old one.
  ValueId use(ValueId value) {
    if (!made_per_use(value)) return value_of_[value];
    const OpId op = program_.defining_op(value);
    return emit(op, operands(op), attrs(op));
  }

  std::vector<ValueId> operands(OpId op) {
    std::vector<ValueId> operands;
    for (const ValueId operand : program_.op_operands(op)) operands.push_back(use(operand));
    return operands;
  }

  ValueId emit(OpId op, const std::vector<ValueId>& operands,
               const std::vector<std::int64_t>& attrs) {
    return result_.add_op(program_.kind(op), operands, attrs, program_.type(program_.result(op)),
                          program_.op_locs[op]);
  }

  /// The value of an equal op that went before, or of a new one.
  ValueId number(OpId op) {
    const std::vector<ValueId> new_operands = operands(op);
    const std::vector<std::int64_t> new_attrs = attrs(op);
    const TensorType& type = program_.type(program_.result(op));
    std::vector<std::int64_t> key{static_cast<std::int64_t>(program_.kind(op)),
                                  static_cast<std::int64_t>(type.dtype), type.shape.size()};
    key.insert(key.end(), type.shape.begin(), type.shape.end());
    key.push_back(static_cast<std::int64_t>(new_operands.size()));
    key.insert(key.end(), new_operands.begin(), new_operands.end());
    key.insert(key.end(), new_attrs.begin(), new_attrs.end());
    if (program_.kind(op) == OpKind::optimization_barrier) key.push_back(op);
    const auto [place, is_new] = numbered_.try_emplace(std::move(key), kNoId);
    if (is_new) place->second = emit(op, new_operands, new_attrs);
    return place->second;
  }

  /// The op's attributes, those that index a side table adapted to the new program's.
  std::vector<std::int64_t> attrs(OpId op) {
    const auto old = program_.op_attrs(op);
    std::vector<std::int64_t> attrs(old.begin(), old.end());
    if (program_.kind(op) == OpKind::constant) attrs[0] = constant_offset(old[0], old[1]);
    if (program_.kind(op) == OpKind::sharding_constraint) attrs[0] = constraint_index(old[0]);
    return attrs;
  }

  std::int64_t constant_offset(std::int64_t offset, std::int64_t size) {
    const auto begin = program_.const_pool.begin() + offset;
    const auto [place, is_new] =
        constants_.try_emplace(std::vector<std::byte>(begin, begin + size), 0);
    if (is_new) {
      std::vector<std::byte>& pool = result_.const_pool;
      pool.resize((pool.size() + 7) / 8 * 8);
      place->second = static_cast<std::int64_t>(pool.size());
      pool.insert(pool.end(), begin, begin + size);
    }
    return place->second;
  }

  std::int64_t constraint_index(std::int64_t old) {
    const Sharding& constraint = program_.constraints[static_cast<std::size_t>(old)];
    std::vector<Sharding>& constraints = result_.constraints;
    const auto place = std::ranges::find(constraints, constraint);
    const std::int64_t index = place - constraints.begin();
    if (place == constraints.end()) constraints.push_back(constraint);
    return index;
  }

  const Program& program_;
  const bool split_constants_;
  Program result_;
  std::vector<ValueId> value_of_;  // by old value
  std::map<std::vector<std::int64_t>, ValueId> numbered_;
  std::map<std::vector<std::byte>, std::int64_t> constants_;
};

}  // namespace

Program canonicalize(const Program& program, bool split_constants) {
  return Canonicalizer(program, split_constants).run();
}

}  // namespace weft
