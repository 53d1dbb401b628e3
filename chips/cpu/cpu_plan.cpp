#include "chips/cpu/cpu_plan.hpp"

#include <algorithm>
#include <utility>

#include "chips/cpu/cpu_loop.hpp"
#include "chips/cpu/kernels/anomaly.hpp"
#include "chips/cpu/loops/vectorize.hpp"
#include "chips/engine/plan_calls.hpp"
#include "spmd/control/loops.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/plan/lifetime.hpp"
#include "spmd/plan/overlap.hpp"
#include "spmd/plan/schedule.hpp"

namespace weft {
namespace {

/// Turns the ops of a plan into steps of one chip.
class PlanLoader {
 public:
  PlanLoader(const Plan& plan, const kernels::ChipContext& chip, std::uint64_t shared_begin,
             bool checks)
      : plan_(plan),
        program_(plan.program),
        chip_(chip),
        shared_begin_(shared_begin),
        checks_(checks) {}

  CpuPlan::Step compute_step(OpId op) const;
  /// Returns the fused loop of the plan's step number `step`.
  CpuPlan::FusedLoop loop(std::size_t step) const;
  /// Returns the place of a value on the chip.
  CpuPlan::Operand operand(ValueId value) const;
  /// Returns the operands that a loop adds up to get the result of a reduce_scatter.
  std::vector<CpuPlan::Operand> addends(ValueId value) const;

 private:
  bool is_viewed(ValueId value) const;
  /// Returns the place from which the elements of a view are read.
  CpuPlan::Operand viewed(ValueId view) const;

  const Plan& plan_;
  const Program& program_;
  const kernels::ChipContext& chip_;
  std::uint64_t shared_begin_;
  bool checks_;
};

CpuPlan::Operand PlanLoader::operand(ValueId value) const {
  const Slot& slot = plan_.slots[value];
  const int own = chip_on_host(chip_.mesh, chip_.position);
  switch (slot.place) {
    case Place::input:
    case Place::output: return {slot.place, own, slot.offset};
    case Place::tile:
      return is_viewed(value) ? viewed(value) : CpuPlan::Operand{slot.place, own, 0};
    case Place::temp:
    case Place::shared:
    case Place::part: break;
  }
  const ChipPlace place = place_in_arena(plan_, value, chip_.mesh, chip_.position, shared_begin_);
  return {slot.place, place.chip, place.offset};
}

bool PlanLoader::is_viewed(ValueId value) const {
  const OpId maker = program_.defining_op(value);
  return maker != kNoId && is_view(program_, maker);
}

CpuPlan::Operand PlanLoader::viewed(ValueId view) const {
  const OpId maker = program_.defining_op(view);
  CpuPlan::Operand place = operand(program_.op_operands(maker)[0]);
  if (program_.kind(maker) == OpKind::reshape) return place;
  const AtomList atoms =
      AtomList::from_bits(static_cast<std::uint64_t>(program_.op_attrs(maker)[0]));
  const bool is_bound = place.place == Place::input || place.place == Place::output;
  (is_bound ? place.within : place.offset) +=
      static_cast<std::uint64_t>(chip_.mesh.index_in(chip_.position, atoms)) *
      static_cast<std::uint64_t>(program_.type(view).bytes());
  return place;
}

std::vector<CpuPlan::Operand> PlanLoader::addends(ValueId value) const {
  std::vector<CpuPlan::Operand> operands;
  for (const auto& [chip, offset] : addends_of(plan_, value, chip_.mesh, chip_.position)) {
    operands.push_back({Place::temp, chip, offset});
  }
  return operands;
}

/// Returns a text such as "tanh at digits.cpp:36". For a fused loop or a bucket, it names the first
/// op and says how many ops follow.
std::string text_of(const Program& program, const PlanStep& step, std::string_view name) {
  std::string text(to_string(program.kind(step.first)));
  if (step.count > 1) text += fmt::format(" and {} more", step.count - 1);
  if (!name.empty()) text += fmt::format(" '{}'", name);
  const std::string& place = program.loc(step.first);
  return place.empty() ? text : fmt::format("{} at {}", text, place);
}

CpuPlan::Step PlanLoader::compute_step(OpId op) const {
  CpuPlan::Step step;
  step.kernel = kernels::prepare(program_, op, chip_);
  if (checks_) step.kernel = kernels::checked(std::move(step.kernel), program_, op);
  for (const ValueId value : program_.op_operands(op)) {
    step.operands[static_cast<std::size_t>(step.num_operands++)] = operand(value);
  }
  step.result = operand(program_.result(op));
  return step;
}

CpuPlan::FusedLoop PlanLoader::loop(std::size_t number) const {
  return load_loop({.plan = plan_,
                    .operand = [this](ValueId value) { return operand(value); },
                    .addends = [this](ValueId value) { return addends(value); },
                    .step = [this](OpId op) { return compute_step(op); },
                    .checks = checks_,
                    .compiles = kernels::kernel_path().compiles && !checks_},
                   number);
}

/// Adds the steps that begin, repeat and end the program's loops and branches.
class RangeLoader {
 public:
  RangeLoader(const PlanLoader& loader, const Program& program, CpuPlan& loaded)
      : loader_(loader), program_(program), loaded_(loaded) {}

  /// begin(), repeat(), test() and branch() call `note(text)` with a text that describes the step
  /// that they added last.
  template <typename Note>
  void begin(const PlanStep& step, const Note& note) {
    for (OpId op = step.first + 1; op < step.end(); ++op) add(op, note);
    open_.push_back(static_cast<std::int32_t>(loaded_.ranges.size()));
    loaded_.steps.push_back({.range = open_.back()});
    note(text(step.first));
    loaded_.ranges.push_back({.number = loader_.operand(program_.result(step.first)),
                              .length = length_of_loop(program_, step.first),
                              .reversed = is_reversed_loop(program_, step.first),
                              .body = loaded_.steps.size()});
  }
  template <typename Note>
  void repeat(OpId loop, const Note& note) {
    loaded_.steps.push_back({.range = open_.back(), .repeats = true});
    open_.pop_back();
    note(text(loop, "next iteration"));
    if (length_of_loop(program_, loop) == 0) go_on_here();
  }
  template <typename Note>
  void test(OpId op, const Note& note) {
    waiting_.push_back(loaded_.steps.size());
    add(op, note);
  }
  template <typename Note>
  void branch(OpId op, const Note& note) {
    if (program_.kind(op) == OpKind::otherwise) go_on_here();
    test(op, note);
  }
  /// Makes the last test or branch jump to the next step if its condition is false.
  void go_on_here() {
    loaded_.steps[waiting_.back()].unless_holds = loaded_.steps.size();
    waiting_.pop_back();
  }

 private:
  std::string text(OpId op, std::string_view name = "") const {
    return text_of(program_, {StepKind::compute, op, 1}, name);
  }
  template <typename Note>
  void add(OpId op, const Note& note) {
    loaded_.steps.push_back(loader_.compute_step(op));
    note(text(op));
  }

  const PlanLoader& loader_;
  const Program& program_;
  CpuPlan& loaded_;
  std::vector<std::int32_t> open_;    // the loops that contain the step
  std::vector<std::size_t> waiting_;  // steps whose jump target isn't known yet
};

}  // namespace

CpuPlan load_plan(const Plan& plan, const kernels::ChipContext& chip, Communicator& communicator,
                  std::uint64_t shared_begin, const EventWriter& events, bool checks) {
  const Mesh& mesh = chip.mesh;
  const Mesh of_plan = mesh_on(plan, mesh);
  verify(plan, of_plan);
  const Program& program = plan.program;
  const PlanLoader loader(plan, chip, shared_begin, checks);
  const std::vector<CollectiveSummary> summaries = collectives(plan, of_plan);
  CpuPlan loaded;
  loaded.num_inputs = program.inputs.size();
  loaded.num_outputs = program.outputs.size();
  const auto note = [&](std::string_view text) { loaded.steps.back().text = events.intern(text); };
  const auto add_call = [&](const CollectiveCall& call) {
    loaded.steps.push_back({.call = static_cast<std::int32_t>(loaded.calls.size())});
    loaded.calls.push_back(communicator.prepare(call));
    const AtomMask hosts = mesh.dcn_atoms();
    if (hosts != 0) loaded.meets_hosts.push_back((call.atoms.mask() & hosts) == hosts);
  };
  RangeLoader ranges(loader, program, loaded);
  const std::vector<Flight> in_flight = flights(plan.steps);
  std::vector<std::int32_t> flying;  // started calls whose waits follow, in their order
  auto summary = summaries.begin();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    switch (step.kind) {
      case StepKind::branch: ranges.branch(step.first, note); break;
      case StepKind::join: ranges.go_on_here(); break;
      case StepKind::test: ranges.test(step.first, note); break;
      case StepKind::compute:
        loaded.steps.push_back(loader.compute_step(step.first));
        loaded.scratch_bytes =
            std::max(loaded.scratch_bytes, loaded.steps.back().kernel.scratch_bytes);
        note(text_of(program, step, ""));
        break;
      case StepKind::loop:
        loaded.steps.push_back({.loop = static_cast<std::int32_t>(loaded.loops.size())});
        loaded.loops.push_back(loader.loop(i));
        loaded.scratch_bytes = std::max(loaded.scratch_bytes, loaded.loops.back().scratch_bytes);
        note(text_of(program, step, ""));
        break;
      case StepKind::collective: {
        CollectiveCall call = collective_call(plan, step, mesh, chip.position, shared_begin);
        call.name = (summary++)->value;
        if (plan.slots[program.result(step.first)].place == Place::shared) {
          loaded.shared_in.push_back(loader.operand(program.result(step.first)).chip);
        }
        add_call(call);
        note(text_of(program, step, call.name));
        if (std::ranges::find(in_flight, i, &Flight::start) != in_flight.end()) {
          loaded.steps.back().goes_on = true;
          flying.push_back(loaded.steps.back().call);
        }
        break;
      }
      case StepKind::wait:
        loaded.steps.push_back({.call = flying.front(), .waits = true});
        flying.erase(flying.begin());
        note(fmt::format("wait of {}", to_string(program.kind(step.first))));
        break;
      case StepKind::barrier: {
        CollectiveCall call = collective_call(plan, step, mesh, chip.position, shared_begin);
        call.name = "shared values are read";
        add_call(call);
        note("barrier 'shared values are read'");
        break;
      }
      case StepKind::begin: ranges.begin(step, note); break;
      case StepKind::repeat: ranges.repeat(step.first, note); break;
      case StepKind::update_wait: loaded.first_update = loaded.steps.size(); break;
    }
  }
  std::size_t held_bytes = 0;
  for (const std::uint32_t output : plan.held) {
    const TensorType& type = program.type(program.outputs[output].value);
    loaded.held.push_back({output, held_bytes, static_cast<std::size_t>(type.bytes())});
    held_bytes += slot_bytes(type);
  }
  return loaded;
}

}  // namespace weft
