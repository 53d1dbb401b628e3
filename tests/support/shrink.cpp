#include "tests/support/shrink.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <weft/tensor/error.hpp>

#include "spmd/control/loops.hpp"
#include "spmd/ops/verify.hpp"

namespace weft::testing {
namespace {

/// Returns the program with only these outputs and what they need. Readers of `replaced` read `by`
/// instead, or a new input with this sharding if `by` is kNoId.
Program rebuilt(const Program& program, std::span<const ProgramOutput> outputs,
                ValueId replaced = kNoId, ValueId by = kNoId, const Sharding& sharding = {}) {
  const auto source = [&](ValueId value) { return value == replaced && by != kNoId ? by : value; };
  std::vector<bool> live(program.num_values(), false);
  for (const ProgramOutput& output : outputs) {
    live[source(output.value)] = true;
    if (output.updates >= 0) {
      live[program.inputs[static_cast<std::size_t>(output.updates)].value] = true;
    }
  }
  for (bool grows = true; grows;) {
    const auto before = std::ranges::count(live, true);
    for (OpId op = program.num_ops(); op-- > 0;) {
      const OpKind kind = program.kind(op);
      const bool is_needed = kind == OpKind::next
                                 ? live[program.op_operands(op)[1]]
                                 : (kind == OpKind::test || kind == OpKind::otherwise) &&
                                       live[program.op_operands(op)[0]];
      if (is_needed) live[program.result(op)] = true;
      if (!live[program.result(op)] || program.result(op) == replaced) continue;
      for (const ValueId operand : program.op_operands(op)) live[source(operand)] = true;
    }
    grows = std::ranges::count(live, true) > before;
  }

  Program result;
  result.begin_from(program);
  std::vector<ValueId> made(program.num_values(), kNoId);
  std::vector<std::int32_t> input_number;
  for (const ProgramInput& input : program.inputs) {
    input_number.push_back(static_cast<std::int32_t>(result.inputs.size()));
    if (!live[input.value]) continue;
    made[input.value] =
        result.add_input(program.type(input.value), input.kind, input.name, input.sharding);
  }
  if (replaced != kNoId && live[replaced]) {
    made[replaced] = result.add_input(program.type(replaced), InputKind::data, "in", sharding);
  }
  for (OpId op = 0; op < program.num_ops(); ++op) {
    const ValueId value = program.result(op);
    if (!live[value] || value == replaced) continue;
    std::vector<ValueId> operands;
    for (const ValueId operand : program.op_operands(op)) operands.push_back(made[source(operand)]);
    std::vector<std::int64_t> attrs(program.op_attrs(op).begin(), program.op_attrs(op).end());
    if (program.kind(op) == OpKind::sharding_constraint) {
      result.constraints.push_back(program.constraints[static_cast<std::size_t>(attrs[0])]);
      attrs[0] = static_cast<std::int64_t>(result.constraints.size()) - 1;
    }
    made[value] = result.add_op(program.kind(op), operands, attrs, program.type(value));
  }
  for (const ProgramOutput& output : outputs) {
    const std::int32_t updates =
        output.updates < 0 ? -1 : input_number[static_cast<std::size_t>(output.updates)];
    result.add_output(made[source(output.value)], output.name, output.sharding, updates);
  }
  return result;
}

/// Returns the program with one iteration in place of a loop. The loop's number, its items and its
/// stacked results become inputs.
Program without_loop(const Program& program, const LoopRange& range) {
  Program result = program;
  const ValueId number = program.result(range.begin);
  std::vector<ValueId> instead(program.num_values());
  std::iota(instead.begin(), instead.end(), ValueId{0});
  for (OpId op = range.begin; op < range.end; ++op) {
    const ValueId value = program.result(op);
    const auto operands = program.op_operands(op);
    const OpKind kind = program.kind(op);
    if (op != range.begin && (!is_border(kind) || operands[0] != number)) continue;
    if (kind == OpKind::carry || kind == OpKind::next) {
      instead[value] = instead[operands[kind == OpKind::carry ? 1 : 2]];
    } else {
      instead[value] = result.add_input(program.type(value), InputKind::data, "in",
                                        Sharding::open(program.shape(value).size()));
    }
  }
  for (ValueId& operand : result.operands) operand = instead[operand];
  for (ProgramOutput& output : result.outputs) output.value = instead[output.value];
  // The loop's own ops become copies, which rebuilt() removes, because nothing outside of the loop
  // reads them any more.
  for (OpId op = range.begin; op < range.end; ++op) {
    if (op != range.begin && program.op_operands(op).empty()) continue;
    const bool is_own =
        op == range.begin || (is_border(program.kind(op)) && program.op_operands(op)[0] == number);
    if (is_own) result.op_kinds[op] = OpKind::copy;
  }
  return rebuilt(result, result.outputs);
}

/// Returns the program with one branch of a cond in place of both.
Program without_cond(const Program& program, const LoopRange& first, const LoopRange& second,
                     bool takes_first) {
  Program result = program;
  std::vector<ValueId> instead(program.num_values());
  std::iota(instead.begin(), instead.end(), ValueId{0});
  for (const OpId merge : second.nexts) {
    instead[program.result(merge)] = instead[program.op_operands(merge)[takes_first ? 1 : 2]];
  }
  // The cond's own ops become copies, which rebuilt() removes, because only ops of the cond still
  // read them.
  for (ValueId& operand : result.operands) operand = instead[operand];
  for (ProgramOutput& output : result.outputs) output.value = instead[output.value];
  result.op_kinds[first.begin] = OpKind::copy;
  result.op_kinds[second.begin] = OpKind::copy;
  for (const OpId merge : second.nexts) result.op_kinds[merge] = OpKind::copy;
  return rebuilt(result, result.outputs);
}

class Shrinker {
 public:
  Shrinker(Program program, const Fails& fails) : program_(std::move(program)), fails_(fails) {}

  Program run() {
    while (end_sooner() || drop_a_loop() || drop_an_output() || drop_an_op() || drop_a_sharding()) {
    }
    return std::move(program_);
  }

 private:
  bool accept(Program candidate) {
    try {
      verify_loops(candidate);
    } catch (const Error&) {
      return false;
    }
    if (!fails_(candidate)) return false;
    program_ = std::move(candidate);
    return true;
  }

  /// Finds the earliest value that fails as the program's only output, and makes it the output.
  bool end_sooner() {
    for (ValueId value = 0; value < program_.num_values(); ++value) {
      const int num_dims = program_.shape(value).size();
      for (const Sharding& sharding : {Sharding::closed(), Sharding::open(num_dims)}) {
        Program candidate = rebuilt(program_, std::vector{ProgramOutput{value, "out", sharding}});
        if (candidate.num_ops() < program_.num_ops() && accept(std::move(candidate))) return true;
      }
    }
    return false;
  }

  bool drop_a_loop() {
    const Loops loops(program_);
    for (std::uint32_t number = 0; number < loops.ranges().size(); ++number) {
      const LoopRange& range = loops[number];
      if (!loops.is_branch(number)) {
        if (accept(without_loop(program_, range))) return true;
      } else if (!range.nexts.empty()) {
        for (const bool takes_first : {true, false}) {
          if (accept(without_cond(program_, loops[range.other], range, takes_first))) return true;
        }
      }
    }
    return false;
  }

  bool drop_an_output() {
    for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
      std::vector<ProgramOutput> outputs = program_.outputs;
      if (std::exchange(outputs[i].updates, -1) >= 0 && accept(rebuilt(program_, outputs))) {
        return true;
      }
      outputs.erase(outputs.begin() + static_cast<std::ptrdiff_t>(i));
      if (!outputs.empty() && accept(rebuilt(program_, outputs))) return true;
    }
    return false;
  }

  bool drop_an_op() {
    for (OpId op = program_.num_ops(); op-- > 0;) {
      const ValueId value = program_.result(op);
      const TensorType& type = program_.type(value);
      for (const ValueId operand : program_.op_operands(op)) {
        if (program_.type(operand) != type) continue;
        if (accept(rebuilt(program_, program_.outputs, value, operand))) return true;
      }
      // A u32 can't become an input, because inputs get small integers of either sign.
      if (type.dtype == DType::u32) continue;
      for (const Sharding& sharding : {Sharding::closed(), Sharding::open(type.shape.size())}) {
        if (accept(rebuilt(program_, program_.outputs, value, kNoId, sharding))) return true;
      }
    }
    return false;
  }

  bool drop_a_sharding() {
    for (std::size_t i = 0; i < shardings(program_).size(); ++i) {
      if (*shardings(program_)[i] == Sharding::closed()) continue;
      Program candidate = program_;
      Sharding& sharding = *shardings(candidate)[i];
      sharding = Sharding::closed();
      if (accept(candidate)) return true;
      sharding = *shardings(program_)[i];
      if (std::exchange(sharding.open_mask, std::uint8_t{0}) != 0 && accept(candidate)) return true;
      for (std::size_t dim = 0; dim < sharding.dims.size(); ++dim) {
        const AtomList atoms = sharding.dims[dim];
        if (atoms.empty()) continue;
        sharding = *shardings(program_)[i];
        sharding.dims[dim] = atoms.prefix(atoms.size() - 1);
        sharding.set_priority(atoms.back(), 0);
        if (accept(candidate)) return true;
      }
    }
    return false;
  }

  static std::vector<Sharding*> shardings(Program& program) {
    std::vector<Sharding*> all;
    for (ProgramInput& input : program.inputs) all.push_back(&input.sharding);
    for (Sharding& constraint : program.constraints) all.push_back(&constraint);
    for (ProgramOutput& output : program.outputs) all.push_back(&output.sharding);
    return all;
  }

  Program program_;
  const Fails& fails_;
};

}  // namespace

Fails of_valid(const Mesh& mesh, Fails fails) {
  return [&mesh, fails = std::move(fails)](const Program& program) {
    try {
      verify(program, mesh);
      return fails(program);
    } catch (const Error&) {
      return false;
    }
  };
}

Program shrink(Program program, const Fails& fails) {
  return Shrinker(std::move(program), fails).run();
}

}  // namespace weft::testing
