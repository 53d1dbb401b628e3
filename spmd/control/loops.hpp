#pragma once
/// Loops: finds the loops and branches of a Program. A loop is a range of the op table: it begins
/// with the op `loop` and ends with the last op of its border (`carry`, `item`, `test`, `stack` and
/// `next`, which have the loop as their first operand). The two branches of a cond are ranges too:
/// the first runs from the op `cond` to `otherwise`, the second from there to the last `merge`;
/// `otherwise` and `merge` have the cond as their first operand. A program doesn't store these
/// ranges, because its ops define them.

#include <cstdint>
#include <vector>

#include "spmd/program/program.hpp"

namespace weft {

/// Returns whether the op is at the border of a loop, which is its first operand.
constexpr bool is_border(OpKind kind) {
  return kind == OpKind::carry || kind == OpKind::item || kind == OpKind::test ||
         kind == OpKind::stack || kind == OpKind::next;
}
/// Returns whether the op is at the border of a branch; its first operand is the cond.
constexpr bool is_cond_border(OpKind kind) {
  return kind == OpKind::otherwise || kind == OpKind::merge;
}
/// Returns whether the op begins a loop or a branch.
constexpr bool begins_range(OpKind kind) {
  return kind == OpKind::loop || kind == OpKind::cond || kind == OpKind::otherwise;
}
/// Returns whether the op is in a loop or a branch, but its result is a value outside of this
/// range.
constexpr bool leaves_loop(OpKind kind) {
  return kind == OpKind::stack || kind == OpKind::next || kind == OpKind::merge;
}

/// A loop or a branch.
struct LoopRange {
  OpId begin = 0;               ///< the op `loop`, `cond` or `otherwise`
  OpId end = 0;                 ///< the op after the last op of the border
  std::uint32_t outer = kNoId;  ///< number of the enclosing range, or kNoId
  std::uint32_t depth = 1;      ///< number of ranges around its ops, including this range
  std::vector<OpId> carries{};  ///< in the order of the program
  std::vector<OpId> nexts{};    ///< in program order; a second branch has its merges here
  OpId test = kNoId;            ///< the `test` of a loop without a fixed length
  std::uint32_t other = kNoId;  ///< number of the other branch of the same cond

  /// Returns the id after the last op that a branch runs.
  OpId body_end() const { return nexts.empty() ? end : nexts.front(); }
};

/// The loops and branches of a program, in the order in which they begin. If a program isn't
/// verified, two ranges may overlap although neither contains the other. A branch that is still
/// being recorded isn't a range yet: its ops belong to the enclosing range.
class Loops {
 public:
  explicit Loops(const Program& program);

  bool empty() const { return ranges_.empty(); }
  const std::vector<LoopRange>& ranges() const { return ranges_; }
  const LoopRange& operator[](std::uint32_t loop) const { return ranges_[loop]; }

  /// Returns the number of the innermost range that contains the op; a range contains its first op
  /// and its border. Returns kNoId if no range contains the op.
  std::uint32_t of_op(OpId op) const { return ranges_.empty() ? kNoId : of_op_[op]; }
  /// Returns the number of the innermost range that contains the value. Only ops in this range may
  /// read the value. A value of a branch may also be read by the merges of its cond.
  std::uint32_t of_value(ValueId value) const;
  /// Returns the number of ranges that contain the op.
  std::uint32_t depth(OpId op) const { return depth_of(of_op(op)); }
  std::uint32_t depth_of(std::uint32_t loop) const {
    return loop == kNoId ? 0 : ranges_[loop].depth;
  }
  /// Returns whether the range `inner` is the range `outer` or is in it. kNoId stands for the whole
  /// program.
  bool contains(std::uint32_t outer, std::uint32_t inner) const;
  /// Returns the number of the range that begins with `op`.
  std::uint32_t at(OpId op) const;
  bool is_branch(std::uint32_t range) const {
    return program_.kind(ranges_[range].begin) != OpKind::loop;
  }
  /// Returns whether the op runs whatever values the predicates of conds and tests have.
  bool always_runs(OpId op) const;

 private:
  void close(OpId op);

  const Program& program_;
  std::vector<LoopRange> ranges_;
  std::vector<std::uint32_t> of_op_;
};

/// Returns the number of iterations of the loop that begins with `op`; 0 means that the loop runs
/// as long as its test holds.
inline std::int64_t length_of_loop(const Program& program, OpId op) {
  return program.op_attrs(op)[0];
}
inline bool is_reversed_loop(const Program& program, OpId op) {
  return program.op_attrs(op)[1] != 0;
}

}  // namespace weft
