#include "spmd/plan/lifetime.hpp"

#include <algorithm>

#include "spmd/control/loops.hpp"
#include "spmd/fusion/spread.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/plan/overlap.hpp"

namespace weft {
namespace {

/// Gives all operands of a bucket one lifetime, and all its results another, because operands and
/// results are each used as one range of bytes.
void join_in_bucket(const Program& program, const PlanStep& bucket,
                    std::vector<Lifetime>& lifetimes) {
  const OpId last = bucket.end() - 1;
  Lifetime operands{bucket.first, last};
  Lifetime results{bucket.first, last};
  for (OpId op = bucket.first; op <= last; ++op) {
    const Lifetime& operand = lifetimes[program.op_operands(op)[0]];
    operands = {std::min(operands.first, operand.first), std::max(operands.last, operand.last)};
    results.last = std::max(results.last, lifetimes[program.result(op)].last);
  }
  for (OpId op = bucket.first; op <= last; ++op) {
    lifetimes[program.op_operands(op)[0]] = operands;
    lifetimes[program.result(op)] = results;
  }
}

/// Makes all values of a loop live through it, because its last op writes the first tile before its
/// first op reads the last tile. If the loop reads a fill or a spread, the operand of the fill or
/// spread lives through the loop too.
void join_in_loop(const Program& program, const PlanStep& loop, std::vector<Lifetime>& lifetimes) {
  const OpId last = loop.end() - 1;
  const auto read = [&](ValueId value) {
    lifetimes[value].last = std::max(lifetimes[value].last, last);
  };
  for (OpId op = loop.first; op <= last; ++op) {
    lifetimes[program.result(op)].first = loop.first;
    for (const ValueId operand : program.op_operands(op)) {
      read(operand);
      const OpId maker = program.defining_op(operand);
      if (maker == kNoId || !is_made_by_loops(program, maker)) continue;
      for (const ValueId scalar : program.op_operands(maker)) read(scalar);
    }
  }
}

/// Makes the operands and results of a collective live until its wait.
void live_through_flight(const Program& program, std::span<const PlanStep> steps,
                         const Flight& flight, std::vector<Lifetime>& lifetimes) {
  OpId last = 0;
  for (std::size_t i = flight.start; i < flight.wait; ++i) {
    if (steps[i].count > 0) last = std::max(last, steps[i].end() - 1);
  }
  const PlanStep& collective = steps[flight.start];
  for (OpId op = collective.first; op < collective.end(); ++op) {
    for (const ValueId value : {program.op_operands(op)[0], program.result(op)}) {
      lifetimes[value].last = std::max(lifetimes[value].last, last);
    }
  }
}

/// Makes outer values that a loop reads live to the loop's end, and results of the loop live from
/// the loop's first op. Joins the lifetimes of each carry and its `next`, which share one place.
void join_in_range(const Program& program, const LoopRange& range,
                   std::vector<Lifetime>& lifetimes) {
  const OpId last = range.end - 1;
  const auto live_through = [&](ValueId value) {
    Lifetime& lifetime = lifetimes[value];
    lifetime = {std::min(lifetime.first, range.begin), std::max(lifetime.last, last)};
  };
  // The initial value of a carry is read once, before the first iteration.
  const OpId first_read = range.begin + 1 + static_cast<OpId>(range.carries.size());
  for (ValueId value = 0; value < program.num_values(); ++value) {
    const OpId maker = program.defining_op(value);
    const bool is_outer = maker == kNoId || maker < range.begin;
    if (is_outer && lifetimes[value].last >= first_read) live_through(value);
  }
  live_through(program.result(range.begin));
  for (OpId op = range.begin; op < range.end; ++op) {
    if (program.kind(op) != OpKind::stack) continue;
    if (program.op_operands(op)[0] == program.result(range.begin)) live_through(program.result(op));
  }
  for (const OpId next : range.nexts) {
    const ValueId carry = program.op_operands(next)[1];
    live_through(program.result(next));
    live_through(carry);
    Lifetime& result = lifetimes[program.result(next)];
    result.last = std::max(result.last, lifetimes[carry].last);
    lifetimes[carry] = result;
  }
}

/// Extends the lifetime of the shared `value` to the next op at which all chips that share it wait
/// for each other.
void live_until_met(const Program& program, const Loops& loops, ValueId value, Lifetime& lifetime) {
  const AtomMask group = meeting_atoms(program, program.defining_op(value));
  const auto meets = [&](OpId op) {
    return (group & ~meeting_atoms(program, op)) == 0 && loops.always_runs(op);
  };
  do {
    ++lifetime.last;
  } while (lifetime.last < program.num_ops() && !meets(lifetime.last));
  lifetime.last = std::min(lifetime.last, program.num_ops() - 1);
}

}  // namespace

std::vector<Lifetime> lifetimes_of(const Program& program, std::span<const PlanStep> steps,
                                   const std::vector<Slot>& slots) {
  std::vector<Lifetime> lifetimes(program.num_values());
  for (OpId op = 0; op < program.num_ops(); ++op) {
    for (const ValueId operand : program.op_operands(op)) lifetimes[operand].last = op;
    lifetimes[program.result(op)] = {op, op};
  }
  for (OpId op = 0; op < program.num_ops(); ++op) {
    for (const ValueId operand : program.op_operands(op)) {
      const OpId maker = program.defining_op(operand);
      const bool is_read_there = maker != kNoId && slots[operand].place == Place::tile;
      if (!is_read_there || !is_view(program, maker)) continue;
      OpId& last = lifetimes[program.op_operands(maker)[0]].last;
      last = std::max(last, op);
    }
  }
  for (const PlanStep& step : steps) {
    if (step.kind == StepKind::loop) join_in_loop(program, step, lifetimes);
  }
  const Loops loops(program);
  for (std::uint32_t range = 0; range < loops.ranges().size(); ++range) {
    if (!loops.is_branch(range)) join_in_range(program, loops[range], lifetimes);
  }
  for (ValueId value = 0; value < program.num_values(); ++value) {
    if (!is_added_by_loops(program, slots, value)) continue;
    const OpId scatter = program.defining_op(value);
    Lifetime added = lifetimes[value];
    live_until_met(program, loops, value, added);
    OpId& last = lifetimes[program.op_operands(scatter)[0]].last;
    last = std::max(last, added.last);
  }
  for (const Flight& flight : flights(steps)) {
    live_through_flight(program, steps, flight, lifetimes);
  }
  // This must follow the loop over the flights, which extends single lifetimes, because all values
  // of a bucket need one lifetime.
  for (const PlanStep& step : steps) {
    if (step.kind == StepKind::collective && program.kind(step.first) == OpKind::all_reduce) {
      join_in_bucket(program, step, lifetimes);
    }
  }
  for (std::uint32_t range = 0; range < loops.ranges().size(); ++range) {
    if (loops.is_branch(range)) continue;
    for (const OpId next : loops[range].nexts) {
      // A bucket or a wait may have extended the lifetime of the carry or of its `next` alone.
      Lifetime& carry = lifetimes[program.op_operands(next)[1]];
      Lifetime& result = lifetimes[program.result(next)];
      carry = result = {std::min(carry.first, result.first), std::max(carry.last, result.last)};
    }
  }
  for (ValueId value = 0; value < program.num_values(); ++value) {
    if (slots[value].place == Place::shared) {
      live_until_met(program, loops, value, lifetimes[value]);
    }
    if (slots[value].place != Place::part) continue;
    OpId& first = lifetimes[static_cast<ValueId>(slots[value].offset)].first;
    first = std::min(first, lifetimes[value].first);
  }
  return lifetimes;
}

std::uint64_t slot_bytes(const TensorType& type) {
  const auto bytes = static_cast<std::uint64_t>(type.bytes());
  return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

}  // namespace weft
