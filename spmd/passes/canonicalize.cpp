#include "spmd/passes/canonicalize.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "spmd/control/loops.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/program/word_hash.hpp"

namespace weft {
namespace {

class Canonicalizer {
 public:
  Canonicalizer(const Program& program, bool split_constants)
      : program_(program),
        split_constants_(split_constants),
        loops_(program),
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
    live_ = live_ops();
    if (!loops_.empty()) find_depths();
    add_ops(0, program_.num_ops());
    for (const ProgramOutput& output : program_.outputs) {
      result_.add_output(use(output.value), output.name, output.sharding, output.updates);
    }
    return std::move(result_);
  }

 private:
  /// Adds the live ops of this range in their order. A `loop` op adds all ops of its loop.
  void add_ops(OpId begin, OpId end) {
    for (OpId op = begin; op < end; ++op) {
      if (program_.kind(op) == OpKind::loop) {
        const LoopRange& range = loops_[loops_.at(op)];
        if (live_[op]) add_loop(range);
        op = range.end - 1;
      } else if (program_.kind(op) == OpKind::cond) {
        const LoopRange& first = loops_[loops_.at(op)];
        const LoopRange& second = loops_[first.other];
        if (live_[op]) add_branches(first, second);
        op = second.end - 1;
      } else if (live_[op] && value_of_[program_.result(op)] == kNoId) {
        add(op);
      }
    }
  }

  void add(OpId op) {
    const ValueId value = program_.result(op);
    if (!made_per_use(value)) value_of_[value] = number(op);
  }

  /// Adds the loop's op, its carries, the other ops, and its nexts. Before the loop, adds the
  /// initial values of the carries and the ops that compute the same value in each iteration.
  void add_loop(const LoopRange& range) {
    for (OpId op = range.begin; op < range.end; ++op) {
      if (live_[op] && depth_[op] < range.depth && value_of_[program_.result(op)] == kNoId) add(op);
    }
    std::vector<ValueId> first;
    for (const OpId carry : range.carries) {
      first.push_back(live_[carry] ? use(program_.op_operands(carry)[1]) : kNoId);
    }
    add(range.begin);
    for (std::size_t i = 0; i < first.size(); ++i) {
      const OpId carry = range.carries[i];
      if (!live_[carry]) continue;
      value_of_[program_.result(carry)] =
          emit(carry, {value_of_[program_.result(range.begin)], first[i]}, {});
    }
    OpId done = range.begin + 1;
    for (const OpId next : range.nexts) {
      add_ops(done, next);
      done = next + 1;
    }
    add_ops(done, range.end);
    add_nexts(range);
  }

  /// Adds both branches of a cond, with the values that its merges read, and then the merges.
  void add_branches(const LoopRange& first, const LoopRange& second) {
    const std::vector<ValueId> a = add_branch(first, second.nexts, 1);
    const std::vector<ValueId> b = add_branch(second, second.nexts, 2);
    for (std::size_t i = 0; i < second.nexts.size(); ++i) {
      const OpId merge = second.nexts[i];
      if (!live_[merge]) continue;
      value_of_[program_.result(merge)] =
          numbered(merge, {value_of_[program_.result(first.begin)], a[i], b[i]});
    }
  }

  /// Adds a branch. Returns the values that the branch gives to the merges as their operand number
  /// `operand`. Forgets the ops of the branch in `numbered_`, so that no later op is merged with
  /// them.
  std::vector<ValueId> add_branch(const LoopRange& branch, const std::vector<OpId>& merges,
                                  std::size_t operand) {
    const OpId begin = result_.num_ops();
    add(branch.begin);
    add_ops(branch.begin + 1, branch.body_end());
    std::vector<ValueId> values;
    for (const OpId merge : merges) {
      values.push_back(live_[merge] ? use(program_.op_operands(merge)[operand]) : kNoId);
    }
    std::erase_if(numbered_, [&](const auto& entry) { return entry.second >= begin; });
    return values;
  }

  void add_nexts(const LoopRange& range) {
    std::vector<ValueId> values;
    for (const OpId next : range.nexts) {
      values.push_back(live_[next] ? use(program_.op_operands(next)[2]) : kNoId);
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      const OpId next = range.nexts[i];
      const auto operands = program_.op_operands(next);
      if (!live_[next]) continue;
      value_of_[program_.result(next)] =
          emit(next, {value_of_[operands[0]], value_of_[operands[1]], values[i]}, {});
    }
  }

  /// Finds for each op the number of loops and branches around it that it can't leave. Ops in a
  /// branch stay there, because outside they might run unnecessarily, or fail.
  void find_depths() {
    depth_.assign(program_.num_ops(), 0);
    for (OpId op = 0; op < program_.num_ops(); ++op) {
      const OpKind kind = program_.kind(op);
      if (begins_range(kind) || is_border(kind) || kind == OpKind::merge) {
        depth_[op] = loops_.depth(op);
      } else {
        depth_[op] = depth_of_branch(loops_.of_op(op));
      }
      for (const ValueId operand : program_.op_operands(op)) {
        const OpId maker = program_.defining_op(operand);
        if (maker == kNoId) continue;
        const std::uint32_t made = depth_[maker] - (leaves_loop(program_.kind(maker)) ? 1 : 0);
        depth_[op] = std::max(depth_[op], made);
      }
    }
  }

  /// Returns the depth of the innermost branch that is or contains the range.
  std::uint32_t depth_of_branch(std::uint32_t range) const {
    while (range != kNoId && !loops_.is_branch(range)) range = loops_[range].outer;
    return loops_.depth_of(range);
  }

  /// Returns for each op another op that it needs to exist: for a carry its `next`, for a loop its
  /// `test`, for a cond its `otherwise`.
  std::vector<OpId> ops_needed() const {
    std::vector<OpId> needed(loops_.empty() ? 0 : program_.num_ops(), kNoId);
    for (std::uint32_t number = 0; number < loops_.ranges().size(); ++number) {
      const LoopRange& range = loops_[number];
      if (loops_.is_branch(number)) {
        needed[range.begin] = loops_[range.other].begin;
        continue;
      }
      needed[range.begin] = range.test;
      for (const OpId next : range.nexts) {
        needed[program_.defining_op(program_.op_operands(next)[1])] = next;
      }
    }
    return needed;
  }

  /// Returns for each op whether some output needs it.
  std::vector<bool> live_ops() const {
    std::vector<bool> live(program_.num_ops(), false);
    const std::vector<OpId> needed = ops_needed();
    std::vector<OpId> open;
    const auto mark_op = [&](OpId op) {
      if (op == kNoId || live[op]) return;
      live[op] = true;
      open.push_back(op);
    };
    const auto mark = [&](ValueId value) { mark_op(program_.defining_op(value)); };
    for (const ProgramOutput& output : program_.outputs) mark(output.value);
    while (!open.empty()) {
      const OpId op = open.back();
      open.pop_back();
      std::ranges::for_each(program_.op_operands(op), mark);
      if (!needed.empty()) mark_op(needed[op]);
    }
    return live;
  }

  bool made_per_use(ValueId value) const {
    const OpId op = program_.defining_op(value);
    if (!split_constants_ || op == kNoId) return false;
    return row(program_.kind(op)).traits->on_demand || program_.is_fill(op);
  }

  /// Returns the new value to be used in one place instead of `value`.
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

  /// Returns the value of an equal op if the new program already has one, and otherwise the value
  /// of a new op.
  ValueId number(OpId op) {
    const std::vector<ValueId> new_operands = operands(op);
    if (row(program_.kind(op)).traits->vanishes) return new_operands.front();
    return numbered(op, new_operands);
  }

  ValueId numbered(OpId op, const std::vector<ValueId>& new_operands) {
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

  /// Returns the op's attributes, with indices into the side tables of the new program.
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
  const Loops loops_;
  std::vector<bool> live_;            // indexed by old op
  std::vector<std::uint32_t> depth_;  // indexed by old op; empty if the program has no loops
  Program result_;
  std::vector<ValueId> value_of_;                        // indexed by old value
  std::unordered_multimap<std::size_t, OpId> numbered_;  // new ops by hash
  std::map<std::vector<std::byte>, std::int64_t> constants_;
};

}  // namespace

Program canonicalize(const Program& program, bool split_constants) {
  return Canonicalizer(program, split_constants).run();
}

}  // namespace weft
