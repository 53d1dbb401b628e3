// Checks a program's loops and branches.

#include <algorithm>

#include "spmd/control/loops.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/ops/verify.hpp"

namespace weft {
namespace {

class LoopsCheck {
 public:
  explicit LoopsCheck(const Program& program) : program_(program), loops_(program) {}

  void run() const {
    for (OpId op = 0; op < program_.num_ops(); ++op) {
      if (is_border(program_.kind(op))) check_border(op);
      if (is_cond_border(program_.kind(op))) check_cond_border(op);
    }
    if (loops_.empty()) return;
    for (std::uint32_t range = 0; range < loops_.ranges().size(); ++range) {
      if (loops_.is_branch(range)) {
        check_branch(loops_[range]);
      } else {
        check_range(loops_[range]);
      }
    }
    for (OpId op = 0; op < program_.num_ops(); ++op) check_reads(op);
    for (const ProgramOutput& output : program_.outputs) {
      if (loops_.of_value(output.value) == kNoId) continue;
      fail(Errc::corrupt,
           "Program: output \"{}\" is %{}, which only ops of a loop or branch may read",
           output.name, output.value);
    }
  }

 private:
  template <typename... Args>
  [[noreturn]] void refuse(OpId op, fmt::format_string<Args...> format, Args&&... args) const {
    const std::string& loc = program_.loc(op);
    fail(Errc::corrupt, "Program: op {} ({}{}{}): {}", op, to_string(program_.kind(op)),
         loc.empty() ? "" : " at ", loc, fmt::format(format, std::forward<Args>(args)...));
  }

  void check_border(OpId op) const {
    const OpId loop = program_.defining_op(program_.op_operands(op)[0]);
    if (loop == kNoId || program_.kind(loop) != OpKind::loop) {
      refuse(op, "operand %{} isn't a loop", program_.op_operands(op)[0]);
    }
    if (loops_.of_op(op) != loops_.at(loop)) refuse(op, "is in another loop than its own");
    const std::int64_t length = length_of_loop(program_, loop);
    if (program_.kind(op) == OpKind::item && length == 0) {
      refuse(op, "the loop at op {} has no length, so it can't have items", loop);
    }
    const OpId test = loops_[loops_.at(loop)].test;
    if (program_.kind(op) == OpKind::test && op != test) {
      refuse(op, "the loop has another test, op {}", test);
    }
    const std::int64_t parts = program_.kind(op) == OpKind::stack  ? program_.op_attrs(op)[0]
                               : program_.kind(op) == OpKind::item ? items_of(op)
                                                                   : length;
    if (parts != length) refuse(op, "has {} parts, but the loop's length is {}", parts, length);
  }

  std::int64_t items_of(OpId op) const { return program_.shape(program_.op_operands(op)[1])[0]; }

  void check_cond_border(OpId op) const {
    const ValueId named = program_.op_operands(op)[0];
    const OpId cond = program_.defining_op(named);
    if (cond == kNoId || program_.kind(cond) != OpKind::cond) {
      refuse(op, "operand %{} isn't a cond", named);
    }
    const std::uint32_t second = loops_[loops_.at(cond)].other;
    if (second == kNoId) refuse(cond, "has no otherwise op");
    if (loops_.of_op(op) != second) refuse(op, "isn't in the second branch of its cond");
  }

  /// Checks that both branches exist, that the second branch directly follows the first, and that
  /// the merges are at the end.
  void check_branch(const LoopRange& range) const {
    if (range.other == kNoId) refuse(range.begin, "has no otherwise op");
    const LoopRange& other = loops_[range.other];
    if (program_.kind(range.begin) == OpKind::cond) {
      if (other.begin != range.end) refuse(range.begin, "isn't followed by an otherwise op");
      return check_inside(range);
    }
    if (range.nexts.empty()) refuse(range.begin, "no merge ends the branch");
    if (range.end - range.nexts.front() != range.nexts.size()) {
      refuse(range.begin, "its merges aren't next to each other");
    }
    check_inside(range);
  }

  void check_inside(const LoopRange& range) const {
    if (range.outer != kNoId && loops_[range.outer].end < range.end) {
      refuse(range.begin, "ends after the range around it");
    }
  }

  void check_test(const LoopRange& range) const {
    const bool has_length = length_of_loop(program_, range.begin) != 0;
    if (has_length && range.test != kNoId)
      refuse(range.test, "a loop with a length can't have a test");
    if (has_length) return;
    if (range.test == kNoId) refuse(range.begin, "a loop without length needs a test");
    if (range.nexts.empty()) refuse(range.begin, "a loop without length needs a next");
    if (range.test > range.nexts.front()) refuse(range.test, "comes after a next");
  }

  void check_range(const LoopRange& range) const {
    if (range.end == range.begin + 1)
      refuse(range.begin, "the loop has no border ops, such as a carry");
    check_inside(range);
    check_test(range);
    std::vector<ValueId> carried;
    for (const OpId next : range.nexts) carried.push_back(program_.op_operands(next)[1]);
    for (const OpId next : range.nexts) {
      const ValueId carry = program_.op_operands(next)[1];
      const OpId maker = program_.defining_op(carry);
      if (std::ranges::find(range.carries, maker) == range.carries.end()) {
        refuse(next, "%{} isn't a carry of its loop", carry);
      }
      if (std::ranges::count(carried, carry) > 1) refuse(next, "%{} has two nexts", carry);
    }
    for (const OpId carry : range.carries) {
      if (std::ranges::find(carried, program_.result(carry)) == carried.end()) {
        refuse(carry, "has no next");
      }
    }
  }

  /// Checks that values made in a loop are read only in that loop, and that the initial value of a
  /// carry is made outside.
  void check_reads(OpId op) const {
    const OpKind kind = program_.kind(op);
    const std::uint32_t inner = loops_.of_op(op);
    const auto operands = program_.op_operands(op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (is_cond_border(kind) && i == 0) continue;
      const bool from_outside = kind == OpKind::carry && i == 1;
      const std::uint32_t reader = from_outside                      ? loops_[inner].outer
                                   : kind == OpKind::merge && i == 1 ? loops_[inner].other
                                                                     : inner;
      if (loops_.contains(loops_.of_value(operands[i]), reader)) continue;
      refuse(op, "reads %{}, which only ops of the range at op {} may read", operands[i],
             loops_[loops_.of_value(operands[i])].begin);
    }
  }

  const Program& program_;
  const Loops loops_;
};

}  // namespace

void verify_loops(const Program& program) { LoopsCheck(program).run(); }

}  // namespace weft
