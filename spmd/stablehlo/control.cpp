// Lowers whole programs: their ops in order, loops as `while` and branches as `if`.

#include <algorithm>
#include <array>

#include <weft/tensor/error.hpp>

#include "spmd/stablehlo/lowering.hpp"

namespace weft {
namespace {

/// Is never called, because ProgramLowering lowers the ops that mark a range (a loop or a branch)
/// together with the range.
HloValue of_range(const HloOp& op) {
  WEFT_CHECK(false, op.op);
  return {};
}

/// Returns the stack with `part` at `number` in dim 0. `number` is the number of the iteration.
HloValue with_part(HloWriter& w, const HloValue& stack, const HloValue& part,
                   const HloValue& number) {
  HloDims dims = stack.type.dims;
  dims[0] = 1;
  HloWriter::Values operands{stack, w.reshape(part, dims), number};
  const HloValue zero = w.splat(number.type, 0);
  operands.resize(2 + dims.size(), zero);
  return w.op("dynamic_update_slice", operands, stack.type);
}

/// Lowers item to the part of operand 1 whose index in dim 0 is the iteration's number (operand 0).
HloValue lower_item(const HloOp& op) {
  HloWriter& w = op.write();
  HloDims sizes = op.operand_type(1).dims;
  sizes[0] = 1;
  HloWriter::Values operands{op.operand(1), op.operand(0)};
  operands.resize(1 + sizes.size(), w.splat(op.operand_type(0), 0));
  const HloValue part =
      w.op("dynamic_slice", operands, op.type.with(sizes), "slice_sizes = " + hlo_array(sizes));
  return w.reshape(part, op.type.dims);
}

constexpr auto kLowerings = [] {
  std::array<const Lowering*, kOpNumberMax> table{};
#define WEFT_LOWERING(name, number) table[number] = &lowerings::name;
  WEFT_OPS(WEFT_LOWERING)
#undef WEFT_LOWERING
  return table;
}();

}  // namespace

ProgramLowering::ProgramLowering(HloContext& context, const Program& program,
                                 std::vector<HloValue> values)
    : context_(context), program_(program), loops_(program), values_(std::move(values)) {
  values_.resize(program.num_values());
}

void ProgramLowering::lower(OpId begin, OpId end) {
  for (OpId op = begin; op < end; ++op) {
    const OpKind kind = program_.kind(op);
    if (kind == OpKind::loop) {
      const LoopRange& range = loops_[loops_.at(op)];
      lower_loop(range);
      op = range.end - 1;
    } else if (kind == OpKind::cond) {
      const LoopRange& first = loops_[loops_.at(op)];
      lower_branches(first, loops_[first.other]);
      op = loops_[first.other].end - 1;
    } else if (!is_border(kind) || kind == OpKind::item) {
      lower_op(op);
    }
  }
}

void ProgramLowering::lower_op(OpId op) {
  HloOp lowered{context_, program_, op, {}, hlo_type(program_.type(program_.result(op)))};
  for (const ValueId operand : program_.op_operands(op)) {
    lowered.operands.push_back(values_[operand]);
  }
  HloValue& result = values_[program_.result(op)];
  context_.writer.set_location(program_.loc(op));
  result = (*kLowerings[static_cast<std::size_t>(program_.kind(op))])(lowered);
  if (&program_ == context_.looks_at) look_for_anomaly(lowered, result);
}

HloWriter::Values ProgramLowering::shared() const {
  HloWriter::Values values;
  for (const HloValue* value : {&context_.token, &context_.faults}) {
    if (!value->name.empty()) values.push_back(*value);
  }
  return values;
}

void ProgramLowering::set_shared(const HloWriter::Values& values) {
  auto next = values.end();
  for (HloValue* value : {&context_.faults, &context_.token}) {
    if (!value->name.empty()) *value = *--next;
  }
}

HloWriter::Values ProgramLowering::rest_of_loop(const LoopRange& range, OpId begin,
                                                const HloValue& number,
                                                const HloWriter::Values& state) {
  HloWriter& w = context_.writer;
  lower(begin, range.end);
  auto place = state.begin();
  HloWriter::Values next{w.binary("add", {*place, w.splat(place->type, 1)})};
  for (const OpId carry : range.carries) {
    const ValueId carried = program_.result(carry);
    const auto found = std::ranges::find_if(
        range.nexts, [&](OpId op) { return program_.op_operands(op)[1] == carried; });
    ++place;
    next.push_back(found == range.nexts.end() ? *place : values_[program_.op_operands(*found)[2]]);
  }
  for (const OpId stack : stacks_of(range)) {
    next.push_back(with_part(w, *++place, values_[program_.op_operands(stack)[1]], number));
  }
  for (const HloValue& value : shared()) next.push_back(value);
  return next;
}

/// Lowers the body of a `while`, and returns the next state. `state` has: how many iterations have
/// ended; the carries; the stacks; the shared values; and, if the loop has a test, the last result
/// of the test.
HloWriter::Values ProgramLowering::body_of_loop(const LoopRange& range,
                                                const HloWriter::Values& state) {
  HloWriter& w = context_.writer;
  const OpId loop = range.begin;
  HloValue number = state[0];
  if (is_reversed_loop(program_, loop)) {
    const auto last = static_cast<double>(length_of_loop(program_, loop) - 1);
    number = w.binary("subtract", {w.splat(number.type, last), number});
  }
  values_[program_.result(loop)] = number;
  for (std::size_t i = 0; i < range.carries.size(); ++i) {
    values_[program_.result(range.carries[i])] = state[1 + i];
  }
  if (range.test == kNoId) {
    set_shared(state);
    return rest_of_loop(range, loop + 1, number, state);
  }
  HloWriter::Values unchanged(state.begin(), state.end() - 1);
  set_shared(unchanged);
  lower(loop + 1, range.test);
  const HloValue goes_on = values_[program_.op_operands(range.test)[1]];
  values_[program_.result(range.test)] = goes_on;
  const HloWriter::Values before = shared();
  std::ranges::copy(before, unchanged.end() - std::ssize(before));
  std::vector<HloType> types;
  for (const HloValue& value : unchanged) types.push_back(value.type);
  const std::string then = w.region({}, [&](const HloWriter::Values&) {
    return rest_of_loop(range, range.test + 1, number, unchanged);
  });
  const std::string otherwise = w.region({}, [&](const HloWriter::Values&) { return unchanged; });
  HloWriter::Values next = w.ops("if", {goes_on}, types, "", {then, otherwise});
  next.push_back(goes_on);
  return next;
}

/// Lowers a loop to a `while`.
void ProgramLowering::lower_loop(const LoopRange& range) {
  HloWriter& w = context_.writer;
  const HloType number{"i32", {}};
  const std::vector<OpId> stacks = stacks_of(range);
  HloWriter::Values state{w.splat(number, 0)};
  for (const OpId carry : range.carries) {
    state.push_back(values_[program_.op_operands(carry)[1]]);
  }
  for (const OpId stack : stacks) {
    state.push_back(w.splat(hlo_type(program_.type(program_.result(stack))), 0));
  }
  for (const HloValue& value : shared()) state.push_back(value);
  const bool has_test = range.test != kNoId;
  if (has_test) state.push_back(w.splat({"i1", {}}, 1));
  std::vector<HloType> types;
  for (const HloValue& value : state) types.push_back(value.type);
  const auto length = static_cast<double>(length_of_loop(program_, range.begin));
  const std::string condition = w.region(types, [&](const HloWriter::Values& now) {
    if (has_test) return HloWriter::Values{now.back()};
    return HloWriter::Values{w.compare("LT", {now[0], w.splat(number, length)})};
  });
  const std::string body =
      w.region(types, [&](const HloWriter::Values& now) { return body_of_loop(range, now); });
  HloWriter::Values last = w.ops("while", state, types, "", {condition, body});
  if (has_test) last.pop_back();
  set_shared(last);
  for (const OpId next : range.nexts) {
    const OpId carry = program_.defining_op(program_.op_operands(next)[1]);
    const auto at = std::ranges::find(range.carries, carry) - range.carries.begin();
    values_[program_.result(next)] = last[static_cast<std::size_t>(1 + at)];
  }
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    values_[program_.result(stacks[i])] = last[1 + range.carries.size() + i];
  }
}

/// Lowers the two branches of a cond to an `if`, whose results are those of the merges.
void ProgramLowering::lower_branches(const LoopRange& first, const LoopRange& second) {
  HloWriter& w = context_.writer;
  const HloValue predicate = values_[program_.op_operands(first.begin)[0]];
  values_[program_.result(first.begin)] = predicate;
  values_[program_.result(second.begin)] = w.unary("not", predicate);
  const HloWriter::Values before = shared();
  std::vector<HloType> types;
  for (const OpId merge : second.nexts) {
    types.push_back(hlo_type(program_.type(program_.result(merge))));
  }
  for (const HloValue& value : before) types.push_back(value.type);
  if (types.empty()) return;  // nothing reads what the branches compute
  const auto branch = [&](const LoopRange& range, std::size_t operand) {
    return w.region({}, [&](const HloWriter::Values&) {
      set_shared(before);
      lower(range.begin + 1, range.body_end());
      HloWriter::Values results;
      for (const OpId merge : second.nexts) {
        results.push_back(values_[program_.op_operands(merge)[operand]]);
      }
      for (const HloValue& value : shared()) results.push_back(value);
      return results;
    });
  };
  const std::string then = branch(first, 1);
  const std::string otherwise = branch(second, 2);
  const HloWriter::Values results = w.ops("if", {predicate}, types, "", {then, otherwise});
  set_shared(results);
  for (std::size_t i = 0; i < second.nexts.size(); ++i) {
    values_[program_.result(second.nexts[i])] = results[i];
  }
}

std::vector<OpId> ProgramLowering::stacks_of(const LoopRange& range) const {
  std::vector<OpId> stacks;
  for (OpId op = range.begin; op < range.end; ++op) {
    const bool is_stack = program_.kind(op) == OpKind::stack;
    if (is_stack && program_.op_operands(op)[0] == program_.result(range.begin)) {
      stacks.push_back(op);
    }
  }
  return stacks;
}

constexpr Lowering lowerings::item = lower_item;
constexpr Lowering lowerings::loop = of_range;
constexpr Lowering lowerings::carry = of_range;
constexpr Lowering lowerings::stack = of_range;
constexpr Lowering lowerings::next = of_range;
constexpr Lowering lowerings::test = of_range;
constexpr Lowering lowerings::cond = of_range;
constexpr Lowering lowerings::otherwise = of_range;
constexpr Lowering lowerings::merge = of_range;

}  // namespace weft
