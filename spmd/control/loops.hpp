#pragma once
/// Loops and branches of a Program. A loop is a range of the table: from its op `loop` to the last
/// op of its border (`carry`, `item`, `test`, `stack`, `next`: they have the loop as their first
/// operand). A branch is one too: the first from its op `cond` to `otherwise`, the second from
/// there to the last `merge`; both have the cond as their first operand. There is no other record
/// of them.

#include <cstdint>
#include <vector>

#include "spmd/program/program.hpp"

namespace weft {

/// Whether the op stands at the border of the loop that is its first operand.
constexpr bool is_border(OpKind kind) {
  return kind == OpKind::carry || kind == OpKind::item || kind == OpKind::test ||
         kind == OpKind::stack || kind == OpKind::next;
}
/// Whether the op stands at the border of the cond that is its first operand.
constexpr bool is_cond_border(OpKind kind) {
  return kind == OpKind::otherwise || kind == OpKind::merge;
}
/// Whether the op begins a loop or a branch.
constexpr bool begins_range(OpKind kind) {
  return kind == OpKind::loop || kind == OpKind::cond || kind == OpKind::otherwise;
}
/// Whether the op stands in a loop or a branch, but its result is a value outside of that.
constexpr bool leaves_loop(OpKind kind) {
  return kind == OpKind::stack || kind == OpKind::next || kind == OpKind::merge;
}

/// A loop or a branch.
struct LoopRange {
  OpId begin = 0;               ///< the op `loop`, `cond` or `otherwise`
  OpId end = 0;                 ///< past the last op of the border
  std::uint32_t outer = kNoId;  ///< number of the range around it
  std::uint32_t depth = 1;      ///< how many ranges contain its ops
  std::vector<OpId> carries{};  ///< in the order of the program
  std::vector<OpId> nexts{};    ///< as well; of a second branch, the merges
  OpId test = kNoId;            ///< of a loop without length
  std::uint32_t other = kNoId;  ///< of a branch: the number of the other one

  /// Past the last op that a branch runs.
  OpId body_end() const { return nexts.empty() ? end : nexts.front(); }
};

/// The loops and branches of a program, in the order of their begins. Of a program that isn't
/// verified, ranges may overlap without nesting. A cond that is still being made has no branches:
/// its ops are of the range around it.
class Loops {
 public:
  explicit Loops(const Program& program);

  bool empty() const { return ranges_.empty(); }
  const std::vector<LoopRange>& ranges() const { return ranges_; }
  const LoopRange& operator[](std::uint32_t loop) const { return ranges_[loop]; }

  /// Number of the innermost range that contains the op, whose own op and border are of it too;
  /// kNoId: none.
  std::uint32_t of_op(OpId op) const { return ranges_.empty() ? kNoId : of_op_[op]; }
  /// Number of the innermost range whose ops may read the value and outside of which none may, but
  /// those of its border.
  std::uint32_t of_value(ValueId value) const;
  /// How many ranges contain the op.
  std::uint32_t depth(OpId op) const { return depth_of(of_op(op)); }
  std::uint32_t depth_of(std::uint32_t loop) const {
    return loop == kNoId ? 0 : ranges_[loop].depth;
  }
  /// Whether `inner` is the range `outer` or lies in it; every range lies in kNoId.
  bool contains(std::uint32_t outer, std::uint32_t inner) const;
  /// The range that begins with `op`.
  std::uint32_t at(OpId op) const;
  bool is_branch(std::uint32_t range) const {
    return program_.kind(ranges_[range].begin) != OpKind::loop;
  }
  /// Whether the op runs whatever predicates are.
  bool always_runs(OpId op) const;

 private:
  void close(OpId op);

  const Program& program_;
  std::vector<LoopRange> ranges_;
  std::vector<std::uint32_t> of_op_;
};

/// The number of iterations of the loop whose op is `op`; 0: as long as its test holds.
inline std::int64_t length_of_loop(const Program& program, OpId op) {
  return program.op_attrs(op)[0];
}
inline bool is_reversed_loop(const Program& program, OpId op) {
  return program.op_attrs(op)[1] != 0;
}

}  // namespace weft
