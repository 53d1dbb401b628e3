#include "spmd/reference/iterate.hpp"

#include <algorithm>
#include <utility>

#include <weft/tensor/error.hpp>

#include "spmd/control/loops.hpp"

namespace weft {
namespace {

class Run {
 public:
  Run(const Program& program, std::vector<ChipElements>& values, std::size_t chips,
      const std::function<ChipElements(OpId)>& evaluate)
      : program_(program), loops_(program), values_(values), chips_(chips), evaluate_(evaluate) {}

  /// Runs the ops. Returns false, without running the rest, as soon as a test of the loop doesn't
  /// hold.
  bool ops(OpId begin, OpId end) {
    for (OpId op = begin; op < end; ++op) {
      const OpKind kind = program_.kind(op);
      if (kind == OpKind::loop) {
        const LoopRange& range = loops_[loops_.at(op)];
        iterate(range);
        op = range.end - 1;
      } else if (kind == OpKind::cond) {
        const LoopRange& first = loops_[loops_.at(op)];
        branch(first, loops_[first.other]);
        op = loops_[first.other].end - 1;
      } else if (kind == OpKind::stack) {
        put(op);
      } else if (kind != OpKind::carry) {
        values_[program_.result(op)] = evaluate_(op);
        if (kind == OpKind::test && !holds(program_.result(op))) return false;
      }
    }
    return true;
  }

 private:
  /// Reads a predicate, which is the same on all chips.
  bool holds(ValueId predicate) const {
    const ChipElements& chips = values_[predicate];
    for (const Elements& other : chips) WEFT_CHECK(other == chips[0], predicate);
    return chips[0][0] != 0;
  }

  void branch(const LoopRange& first, const LoopRange& second) {
    const ValueId predicate = program_.result(first.begin);
    values_[predicate] = evaluate_(first.begin);
    const bool is_first = holds(predicate);
    const LoopRange& taken = is_first ? first : second;
    ops(taken.begin + 1, taken.body_end());
    for (const OpId merge : second.nexts) {
      values_[program_.result(merge)] = values_[program_.op_operands(merge)[is_first ? 1 : 2]];
    }
  }

  void iterate(const LoopRange& range) {
    const std::int64_t length = length_of_loop(program_, range.begin);
    const bool reversed = is_reversed_loop(program_, range.begin);
    // The loop's own value is set first, because it is an operand of the carries, which are
    // evaluated before the first iteration.
    values_[program_.result(range.begin)] = ChipElements(chips_, {0});
    for (const OpId carry : range.carries) values_[program_.result(carry)] = evaluate_(carry);
    for (std::int64_t i = 0; length == 0 || i < length; ++i) {
      const auto number = static_cast<double>(reversed ? length - 1 - i : i);
      values_[program_.result(range.begin)] = ChipElements(chips_, {number});
      if (!ops(range.begin + 1, range.end)) break;
      // The carries are replaced only when all next values are computed, because the next value of
      // a carry may be another carry.
      for (const OpId next : range.nexts) {
        values_[program_.op_operands(next)[1]] = values_[program_.result(next)];
      }
    }
    // The `next` ops get the values of the carries, because the `test` may have ended the loop
    // before they ran.
    for (const OpId next : range.nexts) {
      values_[program_.result(next)] = values_[program_.op_operands(next)[1]];
    }
  }

  /// Writes this iteration's part of a stack.
  void put(OpId stack) {
    const auto operands = program_.op_operands(stack);
    ChipElements& whole = values_[program_.result(stack)];
    const auto size =
        static_cast<std::size_t>(program_.type(program_.result(stack)).num_elements());
    whole.resize(chips_);
    for (std::size_t chip = 0; chip < chips_; ++chip) {
      const Elements& part = values_[operands[1]][chip];
      const auto first = static_cast<std::size_t>(values_[operands[0]][chip][0]) * part.size();
      whole[chip].resize(size);
      std::ranges::copy(part, whole[chip].begin() + static_cast<std::ptrdiff_t>(first));
    }
  }

  const Program& program_;
  const Loops loops_;
  std::vector<ChipElements>& values_;
  const std::size_t chips_;
  const std::function<ChipElements(OpId)>& evaluate_;
};

}  // namespace

void run_ops(const Program& program, std::vector<ChipElements>& values, std::size_t chips,
             const std::function<ChipElements(OpId)>& evaluate) {
  Run(program, values, chips, evaluate).ops(0, program.num_ops());
}

}  // namespace weft
