#include "actors/process/device_choice.hpp"

#include <filesystem>
#include <optional>
#include <vector>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

/// A configuration field that asks for a kind of device.
struct Asked {
  std::string field;
  DeviceKind kind;
};

std::vector<Asked> asked_for(const ScalingConfig& scaling) {
  std::vector<Asked> asked;
  if (scaling.device != DeviceKind::automatic) {
    asked.push_back(
        {fmt::format("scaling.device = {}", to_string(scaling.device)), scaling.device});
  }
  if (scaling.use_tpu) asked.push_back({"scaling.use_tpu = true", DeviceKind::tpu});
  if (scaling.use_gpu) asked.push_back({"scaling.use_gpu = true", DeviceKind::gpu});
  for (const auto& [name, kind] : {std::pair("TPU", DeviceKind::tpu), {"GPU", DeviceKind::gpu}}) {
    if (!scaling.resources_per_worker.contains(name)) continue;
    asked.push_back({fmt::format("scaling.resources_per_worker[\"{}\"]", name), kind});
  }
  const std::string& type = scaling.accelerator_type;
  if (!type.empty() && type != "CPU") {
    asked.push_back({fmt::format("scaling.accelerator_type = \"{}\"", type),
                     type.starts_with("TPU") ? DeviceKind::tpu : DeviceKind::gpu});
  }
  return asked;
}

/// Returns a text such as "a TPU (/dev/accel0, /dev/vfio: absent)".
std::string looked_for(DeviceKind kind, const std::string& root) {
  const bool is_tpu = kind == DeviceKind::tpu;
  const std::vector<std::string> files = is_tpu
                                             ? std::vector<std::string>{"/dev/accel0", "/dev/vfio"}
                                             : std::vector<std::string>{"/dev/nvidia0", "/dev/kfd"};
  std::vector<std::string> found;
  std::error_code ignored;
  for (const std::string& file : files) {
    if (std::filesystem::exists(root + file, ignored)) found.push_back(file);
  }
  return fmt::format("a {} ({})", is_tpu ? "TPU" : "GPU",
                     found.empty() ? fmt::format("{}: absent", fmt::join(files, ", "))
                                   : fmt::format("{}: present, but this version drives CPUs only",
                                                 fmt::join(found, ", ")));
}

}  // namespace

DeviceChoice choose_device(const ScalingConfig& scaling, const std::string& root) {
  const std::vector<Asked> asked = asked_for(scaling);
  for (const Asked& other : asked) {
    if (other.kind == asked.front().kind) continue;
    fail(Errc::invalid_argument, "{} asks for {} chips and {} for {} chips: expected one kind",
         asked.front().field, to_string(asked.front().kind), other.field, to_string(other.kind));
  }
  if (asked.empty()) {
    return {.why =
                fmt::format("chips are threads of the CPU: looked for {} and {}",
                            looked_for(DeviceKind::tpu, root), looked_for(DeviceKind::gpu, root))};
  }
  if (asked.front().kind == DeviceKind::cpu) {
    return {.why = fmt::format("chips are threads of the CPU: {}", asked.front().field)};
  }
  const std::string looked = looked_for(asked.front().kind, root);
  if (scaling.require_device) {
    fail(Errc::unavailable,
         "{} with scaling.require_device: looked for {}; without require_device the same loop runs "
         "on threads of the CPU",
         asked.front().field, looked);
  }
  return {.falls_back = true,
          .why = fmt::format("{}, but chips are threads of the CPU: looked for {}; "
                             "scaling.require_device makes this an error",
                             asked.front().field, looked)};
}

}  // namespace weft
