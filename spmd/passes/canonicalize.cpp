#include "spmd/passes/canonicalize.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "spmd/ops/row.hpp"
#include "spmd/program/word_hash.hpp"

namespace weft {
namespace {

class Canonicalizer {
 public:
  Canonicalizer(const Program& program, bool split_constants)
      : program_(program),
        split_constants_(split_constants),
        value_of_(program.num_values(), kNoId) {
    result_.locs = program.locs;
    result_.reserve(program);
    numbered_.reserve(program.num_ops());
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
    return row(program_.kind(op)).traits->on_demand || program_.is_fill(op);
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

  /// The value of an equal op in the new program, or else of a new op.
  ValueId number(OpId op) {
    const std::vector<ValueId> new_operands = operands(op);
    if (row(program_.kind(op)).traits->vanishes) return new_operands.front();
    const std::vector<std::int64_t> new_attrs = attrs(op);
    if (row(program_.kind(op)).traits->unique) {
      return emit(op, new_operands, new_attrs);
    }
    WordHash hash;
    hash.add(program_.kind(op));
    hash.add_all<ValueId>(new_operands);
    hash.add_all<std::int64_t>(new_attrs);
    const auto [first, last] = numbered_.equal_range(hash.value());
    const auto equal = std::find_if(first, last, [&](const auto& entry) {
      const OpId other = entry.second;
      return result_.kind(other) == program_.kind(op) &&
             result_.type(result_.result(other)) == program_.type(program_.result(op)) &&
             std::ranges::equal(result_.op_operands(other), new_operands) &&
             std::ranges::equal(result_.op_attrs(other), new_attrs);
    });
    if (equal != last) return result_.result(equal->second);
    numbered_.emplace(hash.value(), result_.num_ops());
    return emit(op, new_operands, new_attrs);
  }

  /// The op's attributes; indices into side tables are those of the new program.
  std::vector<std::int64_t> attrs(OpId op) {
    const auto old = program_.op_attrs(op);
    std::vector<std::int64_t> attrs(old.begin(), old.end());
    switch (table_of(program_.kind(op))) {
      case Form::elements: attrs[0] = constant_offset(old[0], old[1]); break;
      case Form::constraint: attrs[0] = constraint_index(old[0]); break;
      case Form::target: attrs[0] = result_.intern_target(program_.custom_target(op)); break;
      default: break;
    }
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
  std::vector<ValueId> value_of_;                        // by old value
  std::unordered_multimap<std::size_t, OpId> numbered_;  // new ops by their hash
  std::map<std::vector<std::byte>, std::int64_t> constants_;
};

}  // namespace

Program canonicalize(const Program& program, bool split_constants) {
  return Canonicalizer(program, split_constants).run();
}

}  // namespace weft
