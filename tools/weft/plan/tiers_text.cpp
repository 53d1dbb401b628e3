#include "tools/weft/plan/tiers_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "spmd/mesh/hybrid_mesh.hpp"

namespace weft {

std::string_view order_of_sums(const CollectiveSummary& collective) {
  if (collective.kind != OpKind::all_reduce && collective.kind != OpKind::reduce_scatter) return "";
  return collective.tier == Tier::dcn ? "hosts" : "chips of a host";
}

std::string steps_of(const CollectiveSummary& collective) {
  if (collective.end == collective.start) return std::to_string(collective.start);
  return fmt::format("{} to {}", collective.start, collective.end);
}

std::string tiers_text(std::int64_t dcn_bytes) {
  return fmt::format(
      "a run sends {} bytes from each host to other hosts\n"
      "a sum over both tiers adds the chips of a host in the order of their group and is rounded; "
      "the sums of the hosts are then added in ascending order\n",
      dcn_bytes);
}

nlohmann::json mesh_json(const Mesh& mesh) {
  nlohmann::json json{{"shape", mesh.shape()}, {"axes", mesh.axis_names()}};
  if (has_hosts(mesh)) json["hosts"] = dcn_shape(mesh);
  return json;
}

nlohmann::json tier_json(const CollectiveSummary& collective) {
  nlohmann::json json{{"tier", to_string(collective.tier)}, {"dcn_bytes", collective.dcn_bytes}};
  const std::string_view order = order_of_sums(collective);
  if (!order.empty()) json["adds"] = order;
  return json;
}

}  // namespace weft
