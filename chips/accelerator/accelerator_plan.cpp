#include "chips/accelerator/accelerator_plan.hpp"

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "chips/accelerator/gang.hpp"

namespace weft {
namespace {

/// Returns the homes for which the program is compiled. A donated input may be overwritten by the
/// output that updates it; each run decides whether it is.
std::vector<OutputHome> homes_of(const Plan& plan) {
  std::vector<OutputHome> homes;
  for (std::size_t i = 0; i < plan.program.outputs.size(); ++i) {
    homes.push_back(plan.donated[i] ? OutputHome::updated : OutputHome::fresh);
  }
  return homes;
}

void bind_custom_ops(AcceleratorPlan& loaded, const Gang& gang) {
  const Program& program = loaded.plan.program;
  for (OpId op = 0; op < program.num_ops(); ++op) {
    if (program.kind(op) != OpKind::custom_call) continue;
    if (gang.client().platform() != "cpu") {
      fail(Errc::unavailable,
           "custom op '{}'{} is a function of the host, which devices of platform {} can't call: "
           "express it in weft's ops, or use chips of the CPU (scaling.device = cpu)",
           program.custom_target(op).name,
           program.loc(op).empty() ? "" : fmt::format(" (at {})", program.loc(op)),
           gang.client().platform());
    }
    loaded.custom_ops.emplace(op, BoundCustomCall(program, op));
  }
  if (!loaded.custom_ops.empty()) pjrt::register_foreign_calls(gang.client().plugin());
}

}  // namespace

std::int64_t AcceleratorPlan::device_bytes() const {
  std::int64_t bytes = executable->temporary_bytes().value_or(0);
  for (const StableHloArgument& argument : hlo.arguments) bytes += argument.type.bytes();
  for (const StableHloResult& result : hlo.results) bytes += result.type.bytes();
  return bytes;
}

std::shared_ptr<const AcceleratorPlan> load_accelerator_plan(const Plan& plan, const Mesh& mesh,
                                                             Gang& gang, bool checks) {
  const Mesh of_plan = mesh_on(plan, mesh);
  verify(plan, of_plan);
  auto loaded = std::make_shared<AcceleratorPlan>();
  loaded->plan = plan;
  const std::vector<CollectiveSummary> summaries = collectives(plan, of_plan);
  loaded->meets = !summaries.empty();
  if (loaded->meets) {
    loaded->first_collective =
        fmt::format("{} '{}'", to_string(summaries.front().kind), summaries.front().value);
  }
  bind_custom_ops(*loaded, gang);
  // A program without collectives has one replica, which gets the chip's position as argument.
  const CollectiveForm form = loaded->meets ? CollectiveForm::replicas : CollectiveForm::calls;
  loaded->hlo =
      to_stablehlo(plan.program, of_plan, "step",
                   {.collectives = form, .homes = homes_of(plan), .detects_anomaly = checks});
  loaded->executable = gang.compile(loaded->hlo.text, loaded->meets);
  return loaded;
}

}  // namespace weft
