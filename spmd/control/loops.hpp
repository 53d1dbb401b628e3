#pragma once
/// Loops of a Program. A loop is a range of the table: from its op `loop` to the last op of its
/// border (`carry`, `item`, `stack`, `next`: they have the loop as their first operand). There is
/// no other record of it.

#include <cstdint>
#include <vector>

#include "spmd/program/program.hpp"

namespace weft {

/// Whether the op stands at the border of the loop that is its first operand.
constexpr bool is_border(OpKind kind) {
  return kind == OpKind::carry || kind == OpKind::item || kind == OpKind::stack ||
         kind == OpKind::next;
}
/// Whether the op's result is a value outside of the loop that is its first operand.
constexpr bool leaves_loop(OpKind kind) { return kind == OpKind::stack || kind == OpKind::next; }

struct LoopRange {
  OpId begin = 0;               ///< the op `loop`
  OpId end = 0;                 ///< past the last op of the border
  std::uint32_t outer = kNoId;  ///< number of the loop around it
  std::uint32_t depth = 1;      ///< how many loops contain its ops
  std::vector<OpId> carries{};  ///< in the order of the program
  std::vector<OpId> nexts{};    ///< as well
};

/// The loops of a program, in the order of their begins. Of a program that isn't verified, ranges
/// may overlap without nesting.
class Loops {
 public:
  explicit Loops(const Program& program);

  bool empty() const { return ranges_.empty(); }
  const std::vector<LoopRange>& ranges() const { return ranges_; }
  const LoopRange& operator[](std::uint32_t loop) const { return ranges_[loop]; }

  /// Number of the innermost loop that contains the op, whose own op and border are of it too;
  /// kNoId: none.
  std::uint32_t of_op(OpId op) const { return ranges_.empty() ? kNoId : of_op_[op]; }
  /// Number of the innermost loop whose ops may read the value and outside of which none may.
  std::uint32_t of_value(ValueId value) const;
  /// How many loops contain the op.
  std::uint32_t depth(OpId op) const { return depth_of(of_op(op)); }
  std::uint32_t depth_of(std::uint32_t loop) const {
    return loop == kNoId ? 0 : ranges_[loop].depth;
  }
  /// Whether `inner` is the loop `outer` or lies in it; every loop lies in kNoId.
  bool contains(std::uint32_t outer, std::uint32_t inner) const;
  /// The loop whose op is `op`, which must be a `loop`.
  std::uint32_t at(OpId op) const;

 private:
  const Program& program_;
  std::vector<LoopRange> ranges_;
  std::vector<std::uint32_t> of_op_;
};

/// The number of iterations of the loop whose op is `op`.
inline std::int64_t length_of_loop(const Program& program, OpId op) {
  return program.op_attrs(op)[0];
}
inline bool is_reversed_loop(const Program& program, OpId op) {
  return program.op_attrs(op)[1] != 0;
}

}  // namespace weft
