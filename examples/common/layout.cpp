#include "examples/common/layout.hpp"

#include <cstdint>
#include <map>

namespace examples {

void Layout::add_to(CLI::App& app) {
  app.add_option("--workers", workers, "worker processes; 0: everything in this process")
      ->envname("WEFT_LAUNCH_WORKERS")
      ->capture_default_str();
  app.add_option("--chips", chips, "chips per worker")
      ->envname("WEFT_LAUNCH_CHIPS")
      ->capture_default_str();
  app.add_option("--topology", topology, "grid of all chips, data x model, such as 4x4")
      ->envname("WEFT_LAUNCH_TOPOLOGY");
  std::map<std::string, weft::DeviceKind> kinds;
  for (const auto kind : {weft::DeviceKind::automatic, weft::DeviceKind::cpu, weft::DeviceKind::gpu,
                          weft::DeviceKind::tpu, weft::DeviceKind::pjrt_cpu}) {
    kinds.emplace(weft::to_string(kind), kind);
  }
  app.add_option_function<std::string>(
         "--device", [this, kinds](const std::string& name) { device = kinds.at(name); },
         "kind of the chips; pjrt:cpu is XLA on the CPU")
      ->check(CLI::IsMember(kinds))
      ->default_str(std::string(weft::to_string(device)));
}

weft::ScalingConfig Layout::scaling() const {
  return {
      .num_workers = workers, .chips_per_worker = chips, .topology = topology, .device = device};
}

weft::SpmdConfig Layout::spmd(const std::vector<std::string>& axes) const {
  if (!topology.empty() || workers > 1) return {.axis_names = axes};
  std::int64_t model = 1;
  for (std::int64_t m = 1; m * m <= chips; ++m) {
    if (chips % m == 0) model = m;
  }
  const std::vector<std::string> names = axes.empty() ? weft::default_axis_names(2) : axes;
  return {.mesh_shape = {chips / model, model}, .axis_names = names};
}

}  // namespace examples
