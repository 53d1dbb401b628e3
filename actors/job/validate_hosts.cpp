#include "actors/job/validate_hosts.hpp"

#include <algorithm>
#include <vector>

#include <fmt/ranges.h>

#include <weft/sharding/hybrid_mesh.hpp>
#include <weft/tensor/error.hpp>

#include "transport/memory/namespaces.hpp"

namespace weft {

void check_placement(const ScalingConfig& scaling, const HostPlace& place) {
  const PlacementStrategy strategy = scaling.placement_strategy;
  if (strategy == PlacementStrategy::strict_spread && scaling.num_workers > place.count) {
    fail(Errc::unavailable,
         "scaling.placement_strategy = PlacementStrategy::strict_spread needs {} hosts for {} "
         "workers, but the job has {} (this one is {}): start the program on {} hosts "
         "(docs/clusters.md), or use PlacementStrategy::spread",
         scaling.num_workers, scaling.num_workers, place.count, machine_name(),
         scaling.num_workers);
  }
  if (strategy == PlacementStrategy::strict_pack && place.count > 1) {
    fail(Errc::unavailable,
         "scaling.placement_strategy = PlacementStrategy::strict_pack needs all {} workers on one "
         "host, but the program was started on {} hosts (WEFT_HOSTS): start it on one, or use "
         "PlacementStrategy::pack",
         scaling.num_workers, place.count);
  }
}

void check_hosts(const TrainerOptions& options, const HostPlace& place) {
  if (place.count == 1) return;
  const int workers = options.scaling.num_workers;
  if (workers == 0 || workers % place.count != 0) {
    fail(Errc::mesh_mismatch,
         "scaling.num_workers = {} with WEFT_HOSTS = {}: each host runs the same number of worker "
         "processes, so give a multiple of {}",
         workers, place.count, place.count);
  }
  if (options.backend.tls.wanted()) {
    fail(Errc::invalid_argument,
         "backend.tls with WEFT_HOSTS = {}: between hosts the control connections are encrypted "
         "with the secret of WEFT_SECRET_FILE; leave backend.tls out",
         place.count);
  }
  if (options.actors != nullptr) {
    fail(Errc::unavailable,
         "TrainerOptions::actors with WEFT_HOSTS = {}: actors beside the loops of several hosts "
         "are not available in this version; leave it out, or let the actor system have the hosts "
         "(SystemOptions::hosts), so that the job runs on host 0",
         place.count);
  }
}

namespace {

/// Throws if UCX can't be used. UCX needs the address of one network device on each host. Without
/// backend.network, it is the device by which the host reaches host 0, but host 0 itself knows that
/// device only if WEFT_TRAINER has its address.
void check_ucx(const BackendConfig& backend, const HostPlace& place) {
  if (!backend.ports.empty()) {
    fail(
        Errc::invalid_argument,
        "backend.ports = \"{}\" with backend.wire = Wire::ucx: UCX chooses its ports itself; leave "
        "backend.ports out, or use Wire::tls",
        backend.ports);
  }
  const bool is_any = place.trainer.starts_with("0.0.0.0:") || place.trainer.starts_with("[::]:");
  if (backend.network.empty() && (place.trainer.empty() || is_any)) {
    fail(Errc::invalid_argument,
         "backend.wire = Wire::ucx without backend.network, and no WEFT_TRAINER that names an "
         "address of host 0: say in backend.network which network UCX uses, such as "
         "\"10.0.0.0/8\" or \"eth1\"");
  }
}

}  // namespace

void set_network(const BackendConfig& backend, JobSpec& spec) {
  const PortRange ports = parse_ports(backend.ports, "backend.ports");
  if (spec.place.count == 1) return;
  spec.network = backend.network;
  if (spec.place.meeting_folder.empty()) spec.place.meeting_folder = spec.storage_path;
  if (!backend.network.empty()) {
    spec.place.address = own_addresses(backend.network, "backend.network").front();
  }
  spec.place.ports = ports;
  spec.place.uses_ucx = backend.wire == Wire::ucx;
  if (spec.place.uses_ucx) check_ucx(backend, spec.place);
  const int needed = spec.chips_per_host() + 1;
  if (!ports.is_any() && ports.size() < needed) {
    fail(Errc::invalid_argument,
         "backend.ports = \"{}\" has {} ports, but a host with {} chips needs {}: give a larger "
         "range, and open it in the firewall",
         backend.ports, ports.size(), spec.chips_per_host(), needed);
  }
}

Mesh over_hosts(const Mesh& mesh, const SpmdConfig& spmd, int hosts) {
  if (spmd.hybrid) {
    if (spmd.hybrid->num_hosts() == hosts) return mesh;
    fail(Errc::mesh_mismatch,
         "backend.spmd.hybrid.dcn = ({}) has {} hosts, but WEFT_HOSTS = {}: make the product of "
         "dcn {}",
         fmt::join(spmd.hybrid->dcn, ","), spmd.hybrid->num_hosts(), hosts, hosts);
  }
  HybridMesh hybrid{.ici = mesh.shape(),
                    .dcn = std::vector<std::int64_t>(mesh.shape().size(), 1),
                    .axis_names = mesh.axis_names()};
  const auto axis = std::ranges::find_if(hybrid.ici, [&](auto size) { return size % hosts == 0; });
  if (axis == hybrid.ici.end() || !std::ranges::is_sorted(mesh.device_ids())) {
    fail(Errc::mesh_mismatch,
         "mesh {} can't be divided among WEFT_HOSTS = {}: none of its axes has a size that {} "
         "divides, or it has device ids of its own; say in backend.spmd.hybrid which axes cross "
         "hosts",
         mesh.to_string(), hosts, hosts);
  }
  *axis /= hosts;
  hybrid.dcn[static_cast<std::size_t>(axis - hybrid.ici.begin())] = hosts;
  return hybrid.mesh();
}

}  // namespace weft
