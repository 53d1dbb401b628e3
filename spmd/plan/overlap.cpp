#include "spmd/plan/overlap.hpp"

#include <algorithm>
#include <numeric>

#include <weft/tensor/error.hpp>

#include "spmd/control/loops.hpp"
#include "spmd/fusion/spread.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/plan/bucket.hpp"
#include "spmd/plan/step_cost.hpp"

namespace weft {
namespace {

bool may_overlap(const Mesh& mesh, const Target& target) {
  return mesh.dcn_atoms() != 0 && target.overlap_work_min != Target::kNever;
}

bool is_between_hosts(const Program& program, OpId op, const Mesh& mesh) {
  return is_collective(program.kind(op)) && tier_of(meeting_atoms(program, op), mesh) == Tier::dcn;
}

/// Returns whether the op computes at most once for each element that it reads or writes. The work
/// of a custom_call is unknown.
bool works_little(const Program& program, OpId op, const Mesh& mesh) {
  if (table_of(program.kind(op)) == Form::target) return false;
  std::int64_t elements = program.shape(program.result(op)).num_elements();
  for (const ValueId operand : program.op_operands(op)) {
    elements += program.shape(operand).num_elements();
  }
  return flops_of(program, op, mesh) <= elements;
}

/// Moves makers of operands of collectives between hosts forward, and readers of the results to the
/// end of a chip's program.
class OverlapOrder {
 public:
  OverlapOrder(const Program& program, const Mesh& mesh)
      : program_(program),
        mesh_(mesh),
        depends_(program.num_values(), false),
        is_delayed_(program.num_ops(), false),
        is_feeding_(program.num_ops(), false),
        number_of_(program.num_values(), 0),
        key_(program.num_ops(), 0) {
    find_dependent();
    find_delayed();
    find_feeding();
    number_collectives();
    for (OpId op = 0; op < program_.num_ops(); ++op) {
      if (is_delayed_[op]) delayed_.push_back(op);
    }
  }

  std::optional<Program> run() {
    if (delayed_.empty() && std::ranges::find(is_feeding_, true) == is_feeding_.end()) return {};
    std::ranges::stable_sort(delayed_, {}, [&](OpId op) { return key_[op]; });
    return in_order(delayed_);
  }

  std::vector<OpId> groups() const {
    std::vector<OpId> first;
    for (std::size_t i = 0; i < delayed_.size(); ++i) {
      if (i == 0 || key_[delayed_[i]] != key_[delayed_[i - 1]]) first.push_back(delayed_[i]);
    }
    return first;
  }

 private:
  bool reads_dependent(OpId op) const {
    return std::ranges::any_of(program_.op_operands(op),
                               [&](ValueId operand) { return depends_[operand]; });
  }

  void find_dependent() {
    for (OpId op = 0; op < program_.num_ops(); ++op) {
      depends_[program_.result(op)] = reads_dependent(op) || is_between_hosts(program_, op, mesh_);
    }
  }

  /// Finds the ops that can stand right behind the last maker of their operands: collectives
  /// between hosts, and what only brings their operands. An all_reduce within the host stays where
  /// it shares a bucket with others.
  void find_feeding() {
    std::vector<bool> is_read_by_feeding(program_.num_values(), false);
    std::vector<bool> is_read_by_others(program_.num_values(), false);
    for (OpId op = program_.num_ops(); op-- > 0;) {
      const ValueId result = program_.result(op);
      const bool may_move = !is_delayed_[op] && !reads_dependent(op) && loops_.of_op(op) == kNoId;
      is_feeding_[op] = may_move && (is_between_hosts(program_, op, mesh_) ||
                                     (is_read_by_feeding[result] && brings(op) &&
                                      (moves_data(op) || !is_read_by_others[result])));
      for (const ValueId operand : program_.op_operands(op)) {
        (is_feeding_[op] ? is_read_by_feeding : is_read_by_others)[operand] = true;
      }
    }
  }
  bool brings(OpId op) const {
    return program_.kind(op) != OpKind::all_reduce && works_little(program_, op, mesh_);
  }
  bool moves_data(OpId op) const {
    const OpKind kind = program_.kind(op);
    return is_collective(kind) || (!is_elementwise(kind) && !is_made_by_loops(program_, op) &&
                                   flops_of(program_, op, mesh_) == 0);
  }

  void find_delayed() {
    std::vector<bool> is_read(program_.num_values(), false);
    std::vector<bool> is_read_early(program_.num_values(), false);
    for (OpId op = program_.num_ops(); op-- > 0;) {
      const ValueId result = program_.result(op);
      const OpKind kind = program_.kind(op);
      const bool may_wait =
          reads_dependent(op)
              ? works_little(program_, op, mesh_)
              : is_read[result] && (is_elementwise(kind) || is_made_by_loops(program_, op));
      is_delayed_[op] = may_wait && !is_read_early[result] && loops_.of_op(op) == kNoId;
      for (const ValueId operand : program_.op_operands(op)) {
        is_read[operand] = true;
        if (!is_delayed_[op]) is_read_early[operand] = true;
      }
    }
  }

  /// Numbers the buckets of collectives between hosts in the order in which they begin. The key of
  /// a delayed op is the last number of those on which it depends. An op that depends on none has
  /// the least key of its readers, so that it stays with them.
  void number_collectives() {
    std::uint32_t count = 0;
    std::vector<bool> joins(program_.num_ops(), false);  // the bucket of the op before it
    for (const Bucket& bucket : buckets(program_)) {
      for (OpId op = bucket.first + 1; op < bucket.first + bucket.count; ++op) joins[op] = true;
    }
    for (const bool is_delayed : {false, true}) {
      for (OpId op = 0; op < program_.num_ops(); ++op) {
        if (is_delayed_[op] != is_delayed) continue;
        for (const ValueId operand : program_.op_operands(op)) {
          key_[op] = std::max(key_[op], number_of_[operand]);
        }
        const bool is_numbered = is_between_hosts(program_, op, mesh_);
        if (is_numbered && !joins[op]) ++count;
        number_of_[program_.result(op)] = is_numbered ? count : key_[op];
      }
    }
    std::vector<std::uint32_t> least(program_.num_values(), count);
    for (OpId op = program_.num_ops(); op-- > 0;) {
      if (!is_delayed_[op]) continue;
      if (!reads_dependent(op)) key_[op] = least[program_.result(op)];
      for (const ValueId operand : program_.op_operands(op)) {
        least[operand] = std::min(least[operand], key_[op]);
      }
    }
  }

  /// Returns for each value its feeding readers, the last one first.
  std::vector<std::vector<OpId>> feeding_readers() const {
    std::vector<std::vector<OpId>> readers(program_.num_values());
    for (OpId op = program_.num_ops(); op-- > 0;) {
      if (!is_feeding_[op]) continue;
      for (const ValueId operand : program_.op_operands(op)) {
        if (readers[operand].empty() || readers[operand].back() != op) {
          readers[operand].push_back(op);
        }
      }
    }
    return readers;
  }

  Program in_order(std::span<const OpId> delayed) const {
    Program result;
    std::vector<ValueId> value_of(program_.num_values(), kNoId);
    result.begin_from(program_);
    for (const ProgramInput& input : program_.inputs) {
      value_of[input.value] = result.add_input(program_.type(input.value), input.kind, input.name,
                                               input.sharding, input.loc);
    }
    const auto add = [&](OpId op) {
      std::vector<ValueId> operands;
      for (const ValueId operand : program_.op_operands(op)) operands.push_back(value_of[operand]);
      const ValueId value = program_.result(op);
      value_of[value] = result.add_op(program_.kind(op), operands, program_.op_attrs(op),
                                      program_.type(value), program_.op_locs[op]);
    };
    const auto is_ready = [&](OpId op) {
      return std::ranges::none_of(program_.op_operands(op),
                                  [&](ValueId operand) { return value_of[operand] == kNoId; });
    };
    const std::vector<std::vector<OpId>> feeding = feeding_readers();
    std::vector<OpId> next;  // a stack
    for (OpId op = 0; op < program_.num_ops(); ++op) {
      if (!is_delayed_[op] && value_of[program_.result(op)] == kNoId) next.push_back(op);
      while (!next.empty()) {
        const OpId now = next.back();
        next.pop_back();
        add(now);
        if (loops_.of_op(now) != kNoId) continue;  // the loop may not have ended
        for (const OpId reader : feeding[program_.result(now)]) {
          if (is_ready(reader)) next.push_back(reader);
        }
      }
    }
    std::ranges::for_each(delayed, add);
    for (const ProgramOutput& output : program_.outputs) {
      result.add_output(value_of[output.value], output.name, output.sharding, output.updates);
    }
    return result;
  }

  const Program& program_;
  const Mesh& mesh_;
  const Loops loops_{program_};
  std::vector<bool> depends_;             // by value: on a collective between hosts
  std::vector<bool> is_delayed_;          // by op
  std::vector<bool> is_feeding_;          // by op
  std::vector<std::uint32_t> number_of_;  // by value: the last collective on which it depends
  std::vector<std::uint32_t> key_;        // by op
  std::vector<OpId> delayed_;
};

/// Follows the steps of a plan, and finds which of them read the results of collectives.
class StepsWalk {
 public:
  explicit StepsWalk(const Plan& plan)
      : plan_(plan), maker_(plan.program.num_values(), kNone), positions_(plan.steps.size()) {
    const Program& program = plan.program;
    std::size_t depth = 0;
    std::size_t outer = 0;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const PlanStep& step = plan.steps[i];
      const bool begins =
          step.kind == StepKind::begin ||
          (step.kind == StepKind::branch && program.kind(step.first) == OpKind::cond);
      if (depth == 0) outer = i;
      positions_[i] = outer;
      in_range_.push_back(depth > 0 || begins);
      if (begins) ++depth;
      if (step.kind == StepKind::repeat || step.kind == StepKind::join) --depth;
      if (step.kind != StepKind::collective) continue;
      for (OpId op = step.first; op < step.end(); ++op) maker_[program.result(op)] = i;
    }
  }

  /// Returns whether the step is in a loop or a branch of the program, or begins one.
  bool is_in_range(std::size_t step) const { return in_range_[step]; }

  /// Returns for each collective the first step that reads a result of it, or the loop or branch
  /// of the program that contains that step; the number of steps if no step does.
  std::vector<std::size_t> first_readers() const {
    std::vector<std::size_t> first(plan_.steps.size(), plan_.steps.size());
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const PlanStep& step = plan_.steps[i];
      for (OpId op = step.first; op < step.end(); ++op) {
        for (const ValueId operand : plan_.program.op_operands(op)) note(operand, i, first);
      }
    }
    return first;
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  /// Notes that the step reads the value. A value that has no memory is made where it is read.
  void note(ValueId value, std::size_t step, std::vector<std::size_t>& first) const {
    const Program& program = plan_.program;
    if (maker_[value] != kNone && maker_[value] < step) {
      first[maker_[value]] = std::min(first[maker_[value]], positions_[step]);
    }
    const OpId op = program.defining_op(value);
    if (op == kNoId || plan_.slots[value].place != Place::tile) return;
    if (!is_made_by_loops(program, op)) return;
    for (const ValueId operand : program.op_operands(op)) note(operand, step, first);
  }

  const Plan& plan_;
  std::vector<std::size_t> maker_;      // by value: the collective step whose result it is
  std::vector<std::size_t> positions_;  // by step: itself, or the outermost range that contains it
  std::vector<bool> in_range_;          // by step
};

template <typename... Args>
[[noreturn]] void refuse_wait(std::size_t step, fmt::format_string<Args...> format,
                              Args&&... args) {
  fail(Errc::corrupt, "plan: step {} waits {}", step,
       fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace

std::optional<Program> reorder_for_overlap(const Program& chip_program, const Mesh& mesh,
                                           const Target& target) {
  if (!may_overlap(mesh, target)) return {};
  return OverlapOrder(chip_program, mesh).run();
}

std::vector<OpId> delayed_groups(const Program& chip_program, const Mesh& mesh,
                                 const Target& target) {
  if (!may_overlap(mesh, target)) return {};
  return OverlapOrder(chip_program, mesh).groups();
}

void place_waits(Plan& plan, const Mesh& mesh, const Target& target) {
  if (!may_overlap(mesh, target)) return;
  const StepsWalk walk(plan);
  const std::vector<std::size_t> readers = walk.first_readers();
  std::vector<std::int64_t> work{0};  // by step: the work of all steps before it
  const std::vector<StepCost> costs = step_costs(plan, mesh);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    const bool is_queued =
        step.kind == StepKind::collective && is_between_hosts(plan.program, step.first, mesh);
    work.push_back(work.back() + (is_queued ? 0 : costs[i].bytes() + costs[i].flops));
  }
  const auto barrier = std::ranges::find(plan.steps, StepKind::barrier, &PlanStep::kind);
  auto latest = static_cast<std::size_t>(barrier - plan.steps.begin());
  std::vector<std::vector<OpId>> waits(plan.steps.size() + 1);  // by the step before which they are
  for (std::size_t i = plan.steps.size(); i-- > 0;) {
    const PlanStep& step = plan.steps[i];
    if (step.kind != StepKind::collective || walk.is_in_range(i)) continue;
    if (!is_between_hosts(plan.program, step.first, mesh)) continue;
    std::size_t at = std::min(readers[i], latest);
    // The wait tells what other hosts have committed, for which the update_wait waits.
    if (at > i + 1 && plan.steps[at - 1].kind == StepKind::update_wait) --at;
    if (at <= i + 1 || work[at] - work[i + 1] < target.overlap_work_min) continue;
    latest = at;
    waits[at].push_back(step.first);
  }
  std::vector<PlanStep> steps;
  std::vector<std::uint32_t> moved_to;
  for (std::size_t i = 0; i <= plan.steps.size(); ++i) {
    std::ranges::reverse(waits[i]);
    for (const OpId first : waits[i]) steps.push_back({StepKind::wait, first, 0});
    moved_to.push_back(static_cast<std::uint32_t>(steps.size()));
    if (i < plan.steps.size()) steps.push_back(plan.steps[i]);
  }
  for (TileBuffer& tile : plan.tiles) tile.step = moved_to[tile.step];
  plan.steps = std::move(steps);
}

std::vector<Flight> flights(std::span<const PlanStep> steps) {
  std::vector<Flight> found;
  for (std::size_t wait = 0; wait < steps.size(); ++wait) {
    if (steps[wait].kind != StepKind::wait) continue;
    const auto before = steps.first(wait);
    const auto start = std::ranges::find_if(before, [&](const PlanStep& step) {
      return step.kind == StepKind::collective && step.first == steps[wait].first;
    });
    if (start == before.end()) continue;
    found.push_back({static_cast<std::size_t>(start - before.begin()), wait});
  }
  return found;
}

void verify_waits(const Plan& plan, const Mesh& mesh) {
  if (std::ranges::find(plan.steps, StepKind::wait, &PlanStep::kind) == plan.steps.end()) return;
  const StepsWalk walk(plan);
  const std::vector<std::size_t> readers = walk.first_readers();
  const std::vector<Flight> all = flights(plan.steps);
  auto flight = all.begin();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    if (step.kind != StepKind::wait) continue;
    if (flight == all.end() || flight->wait != i) {
      refuse_wait(i, "for op {}, which no collective before it runs", step.first);
    }
    if (!is_between_hosts(plan.program, step.first, mesh) || walk.is_in_range(flight->start)) {
      refuse_wait(i, "for op {} ({}), which isn't a collective between hosts outside of loops",
                  step.first, to_string(plan.program.kind(step.first)));
    }
    if (flight != all.begin() && std::prev(flight)->start >= flight->start) {
      refuse_wait(i, "for step {} after step {}; expected the order of the collectives",
                  flight->start, std::prev(flight)->start);
    }
    if (readers[flight->start] < i) {
      refuse_wait(i, "for step {}, whose result step {} reads", flight->start,
                  readers[flight->start]);
    }
    ++flight;
  }
}

}  // namespace weft
