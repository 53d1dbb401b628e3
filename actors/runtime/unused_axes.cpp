#include "actors/runtime/unused_axes.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft {
namespace {

bool is_step(const Program& program) {
  const auto updates = [](const ProgramOutput& output) { return output.updates >= 0; };
  const auto is_data = [](const ProgramInput& input) { return input.kind == InputKind::data; };
  return std::ranges::any_of(program.outputs, updates) &&
         std::ranges::any_of(program.inputs, is_data);
}

/// Returns the axes along which an input or an output is sharded, or along which a collective acts.
/// Other values needn't be examined: a value that is sharded along another axis than these could
/// only be the result of a collective along that axis.
std::set<int> used_axes(const Plan& plan, const Mesh& mesh) {
  std::set<int> axes;
  const auto add = [&](const Sharding& sharding) {
    for (Atom atom = 1; atom <= mesh.num_atoms(); ++atom) {
      if ((sharding.used() >> atom) & 1U) axes.insert(mesh.atom_axis(atom));
    }
  };
  for (const ProgramInput& input : plan.program.inputs) add(input.sharding);
  for (const ProgramOutput& output : plan.program.outputs) add(output.sharding);
  for (const CollectiveSummary& collective : collectives(plan, mesh)) {
    for (const std::string& name : collective.axes) {
      axes.insert(mesh.axis_index(name.substr(0, name.find(':'))));
    }
  }
  return axes;
}

}  // namespace

std::optional<std::string> hint_at_unused_axes(const Plan& plan, const Mesh& mesh,
                                               const std::string& site) {
  if (!is_step(plan.program)) return {};
  const std::set<int> used = used_axes(plan, mesh);
  std::vector<std::string> idle;
  std::int64_t copies = 1;
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    const std::int64_t size = mesh.shape()[static_cast<std::size_t>(axis)];
    if (size == 1 || used.contains(axis)) continue;
    idle.push_back(fmt::format("\"{}\"", mesh.axis_names()[static_cast<std::size_t>(axis)]));
    copies *= size;
  }
  if (used.empty() || idle.empty()) return {};
  std::vector<std::string> whole;
  for (const int axis : used) {
    const auto at = static_cast<std::size_t>(axis);
    const std::int64_t size = mesh.shape()[at] * (whole.empty() ? copies : 1);
    whole.push_back(fmt::format("{}={}", mesh.axis_names()[at], size));
  }
  return fmt::format(
      "no tensor in the program of {} is sharded along {} of the mesh {}: {} chips do the same "
      "part of the work. To divide the work among all chips, use weft launch --mesh {}, or "
      "backend.spmd",
      site, fmt::join(idle, ", "), mesh.to_string(), copies, fmt::join(whole, ","));
}

}  // namespace weft
