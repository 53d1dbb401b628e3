#include "chips/pjrt/pjrt_plan.hpp"

#include <algorithm>

#include "chips/engine/plan_calls.hpp"
#include "spmd/ops/row.hpp"

namespace weft {
namespace {

std::size_t bytes_of_value(const Program& program, ValueId value) {
  return static_cast<std::size_t>(program.type(value).bytes());
}

/// Returns the name of the collective that contains `op`.
std::string name_of(const Plan& plan, const std::vector<CollectiveSummary>& summaries, OpId op) {
  for (const CollectiveSummary& summary : summaries) {
    const PlanStep& step = plan.steps[summary.start];
    if (op >= step.first && op < step.end()) return summary.value;
  }
  return "";
}

}  // namespace

std::shared_ptr<PjrtPlan> load_pjrt_plan(const Plan& plan, const Mesh& mesh, int position,
                                         Communicator& communicator, bool checks) {
  const Mesh of_plan = mesh_on(plan, mesh);
  verify(plan, of_plan);
  auto loaded = std::make_shared<PjrtPlan>();
  loaded->plan = plan;
  loaded->checks = checks;
  const Program& program = plan.program;
  loaded->has_updates = std::ranges::any_of(
      program.outputs, [](const ProgramOutput& output) { return output.updates >= 0; });
  const std::vector<CollectiveSummary> summaries = collectives(plan, of_plan);
  for (OpId op = 0; op < program.num_ops(); ++op) {
    if (program.kind(op) == OpKind::custom_call) {
      loaded->custom_ops.emplace(op, BoundCustomCall(program, op));
    }
    if (!is_collective(program.kind(op))) continue;
    // Each op of a bucket becomes its own call, because the program's text has a call for each op.
    CollectiveCall call =
        collective_call(plan, {StepKind::collective, op, 1}, mesh, position, /*shared_begin=*/0);
    const std::string name = name_of(plan, summaries, op);
    call.name = name;
    loaded->collectives.push_back(
        {.call = communicator.prepare(call),
         .source = call.source,
         .destination = call.destination,
         .source_bytes = bytes_of_value(program, program.op_operands(op)[0]),
         .destination_bytes = bytes_of_value(program, program.result(op))});
  }
  return loaded;
}

const PjrtPlan::Version& add_version(const PjrtPlan& plan, const std::vector<OutputHome>& homes,
                                     const Mesh& mesh, pjrt::Client& client,
                                     const CompiledStore& store) {
  StableHlo hlo = to_stablehlo(
      plan.plan.program, mesh_on(plan.plan, mesh), "step",
      {.collectives = CollectiveForm::calls, .homes = homes, .detects_anomaly = plan.checks});
  WEFT_CHECK(hlo.collectives.size() == plan.collectives.size(), hlo.collectives.size());
  auto executable = pjrt::CpuDevices::of_process().compile(client, hlo.text, store);
  return plan.versions.emplace(homes, PjrtPlan::Version{std::move(hlo), std::move(executable)})
      .first->second;
}

}  // namespace weft
