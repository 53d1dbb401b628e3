// The checks of a program's loops.

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
    }
    if (loops_.empty()) return;
    for (const LoopRange& range : loops_.ranges()) check_range(range);
    for (OpId op = 0; op < program_.num_ops(); ++op) check_reads(op);
    for (const ProgramOutput& output : program_.outputs) {
      if (loops_.of_value(output.value) == kNoId) continue;
      fail(Errc::corrupt, "Program: output \"{}\" is %{}, which only ops of a loop may read",
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
    if (loops_.of_op(op) != loops_.at(loop)) refuse(op, "stands in another loop than its own");
    const std::int64_t length = length_of_loop(program_, loop);
    const std::int64_t parts = program_.kind(op) == OpKind::stack  ? program_.op_attrs(op)[0]
                               : program_.kind(op) == OpKind::item ? items_of(op)
                                                                   : length;
    if (parts != length) refuse(op, "has {} parts, but the loop's length is {}", parts, length);
  }

  std::int64_t items_of(OpId op) const { return program_.shape(program_.op_operands(op)[1])[0]; }

  void check_range(const LoopRange& range) const {
    if (range.end == range.begin + 1) refuse(range.begin, "no op stands at the loop's border");
    if (range.outer != kNoId && loops_[range.outer].end < range.end) {
      refuse(range.begin, "the loop ends behind the loop around it");
    }
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

  /// What is made in a loop is read there only; what a carry begins with is made outside.
  void check_reads(OpId op) const {
    const OpKind kind = program_.kind(op);
    const std::uint32_t inner = loops_.of_op(op);
    const auto operands = program_.op_operands(op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const bool from_outside = kind == OpKind::carry && i == 1;
      const std::uint32_t reader = from_outside ? loops_[inner].outer : inner;
      if (loops_.contains(loops_.of_value(operands[i]), reader)) continue;
      refuse(op, "reads %{}, which only ops of the loop at op {} may read", operands[i],
             loops_[loops_.of_value(operands[i])].begin);
    }
  }

  const Program& program_;
  const Loops loops_;
};

}  // namespace

void verify_loops(const Program& program) { LoopsCheck(program).run(); }

}  // namespace weft
