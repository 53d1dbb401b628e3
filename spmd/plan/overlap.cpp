#include "spmd/plan/overlap.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "spmd/fusion/spread.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/plan/lifetime.hpp"
#include "spmd/plan/step_cost.hpp"

namespace weft {
namespace {

/// Finds for each collective of a plan the first step that reads a result of it.
class FirstReaders {
 public:
  explicit FirstReaders(const Plan& plan)
      : plan_(plan),
        maker_(plan.program.num_values(), kNone),
        positions_(plan.steps.size()),
        first_(plan.steps.size(), plan.steps.size()) {
    find_makers();
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const PlanStep& step = plan_.steps[i];
      for (OpId op = step.first; op < step.end(); ++op) {
        for (const ValueId operand : plan_.program.op_operands(op)) note(operand, i);
      }
    }
  }

  /// Returns whether the step is in a loop or a branch of the program, or begins a loop or a
  /// branch.
  bool is_in_range(std::size_t step) const { return in_range_[step]; }

  /// Returns the first step that reads a result of this collective. If that step is in a loop or a
  /// branch of the program, returns the first step of the loop or branch. Returns the number of
  /// steps if no step reads a result.
  std::size_t of(std::size_t collective) const { return first_[collective]; }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  void find_makers() {
    const Program& program = plan_.program;
    std::size_t depth = 0;
    std::size_t outer = 0;
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const PlanStep& step = plan_.steps[i];
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

  /// Notes that the step reads the value, and if the step computes the value itself, also that it
  /// reads the value's operands.
  void note(ValueId value, std::size_t step) {
    const Program& program = plan_.program;
    if (maker_[value] != kNone && maker_[value] < step) {
      first_[maker_[value]] = std::min(first_[maker_[value]], positions_[step]);
    }
    const OpId op = program.defining_op(value);
    if (op == kNoId || plan_.slots[value].place != Place::tile) return;
    if (!is_made_by_loops(program, op)) return;
    for (const ValueId operand : program.op_operands(op)) note(operand, step);
  }

  const Plan& plan_;
  std::vector<std::size_t> maker_;      // indexed by value: the collective step whose result it is
  std::vector<std::size_t> positions_;  // indexed by step: the outermost range around it, or itself
  std::vector<bool> in_range_;          // indexed by step
  std::vector<std::size_t> first_;      // indexed by step
};

/// Decides where the collectives of a plan end if they run beside other steps.
class WaitPlacement {
 public:
  WaitPlacement(const Plan& plan, const Mesh& mesh, const Target& target)
      : plan_(plan), mesh_(mesh), target_(target), ends_(plan.steps.size(), kNone) {
    const std::vector<StepCost> costs = step_costs(plan, mesh);
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      work_.push_back(work_.back() + (may_go_on(i) ? 0 : costs[i].bytes() + costs[i].flops));
    }
  }

  /// Returns the collectives that run beside other steps, in order. `wait` is the step before which
  /// one ends.
  std::vector<Flight> run() {
    end_before_readers();
    limit_bytes();
    std::vector<Flight> flights;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      if (ends_[i] != kNone) flights.push_back({i, ends_[i]});
    }
    return flights;
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  bool may_go_on(std::size_t i) const {
    const PlanStep& step = plan_.steps[i];
    return step.kind == StepKind::collective && is_between_hosts(plan_.program, step.first, mesh_);
  }
  bool is_worth_it(std::size_t i) const {
    return ends_[i] > i + 1 && work_[ends_[i]] - work_[i + 1] >= target_.overlap_work_min;
  }

  void end_before_readers() {
    const FirstReaders readers(plan_);
    const auto barrier = std::ranges::find(plan_.steps, StepKind::barrier, &PlanStep::kind);
    auto latest = static_cast<std::size_t>(barrier - plan_.steps.begin());
    for (std::size_t i = plan_.steps.size(); i-- > 0;) {
      if (!may_go_on(i) || readers.is_in_range(i)) continue;
      std::size_t at = std::min(readers.of(i), latest);
      // The wait tells what other hosts have committed, for which the update_wait waits.
      if (at > i + 1 && plan_.steps[at - 1].kind == StepKind::update_wait) --at;
      ends_[i] = at;
      if (is_worth_it(i)) {
        latest = at;
      } else {
        ends_[i] = kNone;
      }
    }
  }

  std::int64_t bytes_of(const PlanStep& collective) const {
    const Program& program = plan_.program;
    std::uint64_t bytes = 0;
    for (OpId op = collective.first; op < collective.end(); ++op) {
      for (const ValueId value : {program.op_operands(op)[0], program.result(op)}) {
        bytes += slot_bytes(program.type(value));
      }
    }
    return static_cast<std::int64_t>(bytes);
  }

  void limit_bytes() {
    std::deque<std::size_t> going;
    std::int64_t bytes = 0;
    const auto end_oldest = [&] {
      bytes -= bytes_of(plan_.steps[going.front()]);
      going.pop_front();
    };
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      while (!going.empty() && ends_[going.front()] <= i) end_oldest();
      if (ends_[i] == kNone) continue;
      const std::int64_t more = bytes_of(plan_.steps[i]);
      while (!going.empty() && bytes + more > target_.overlap_bytes_max) {
        std::size_t& end = ends_[going.front()];
        end = i;
        if (!is_worth_it(going.front())) end = kNone;
        end_oldest();
      }
      going.push_back(i);
      bytes += more;
    }
  }

  const Plan& plan_;
  const Mesh& mesh_;
  const Target& target_;
  std::vector<std::int64_t> work_{0};  // by step: the work of all steps before it
  std::vector<std::size_t> ends_;  // by step: the one before which its collective ends; or kNone
};

template <typename... Args>
[[noreturn]] void refuse_wait(std::size_t step, fmt::format_string<Args...> format,
                              Args&&... args) {
  fail(Errc::corrupt, "plan: step {} waits {}", step,
       fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace

bool may_overlap(const Mesh& mesh, const Target& target) {
  return mesh.dcn_atoms() != 0 && target.overlap_work_min != Target::kNever;
}

bool is_between_hosts(const Program& program, OpId op, const Mesh& mesh) {
  return is_collective(program.kind(op)) && tier_of(meeting_atoms(program, op), mesh) == Tier::dcn;
}

void place_waits(Plan& plan, const Mesh& mesh, const Target& target) {
  if (!may_overlap(mesh, target)) return;
  const std::vector<Flight> flights = WaitPlacement(plan, mesh, target).run();
  auto flight = flights.begin();
  std::vector<PlanStep> steps;
  std::vector<std::uint32_t> moved_to;
  for (std::size_t i = 0; i <= plan.steps.size(); ++i) {
    for (; flight != flights.end() && flight->wait == i; ++flight) {
      steps.push_back({StepKind::wait, plan.steps[flight->start].first, 0});
    }
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
  const FirstReaders readers(plan);
  const std::vector<Flight> all = flights(plan.steps);
  auto flight = all.begin();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    if (step.kind != StepKind::wait) continue;
    if (flight == all.end() || flight->wait != i) {
      refuse_wait(i, "for op {}, which no collective before it runs", step.first);
    }
    if (!is_between_hosts(plan.program, step.first, mesh) || readers.is_in_range(flight->start)) {
      refuse_wait(i, "for op {} ({}), which isn't a collective between hosts outside of loops",
                  step.first, to_string(plan.program.kind(step.first)));
    }
    if (flight != all.begin() && std::prev(flight)->start >= flight->start) {
      refuse_wait(i, "for step {} after step {}; expected the order of the collectives",
                  flight->start, std::prev(flight)->start);
    }
    if (readers.of(flight->start) < i) {
      refuse_wait(i, "for step {}, whose result step {} reads", flight->start,
                  readers.of(flight->start));
    }
    ++flight;
  }
}

}  // namespace weft
