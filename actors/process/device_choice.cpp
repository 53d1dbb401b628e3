#include "actors/process/device_choice.hpp"

#include <filesystem>
#include <optional>
#include <vector>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

/// A field of the configuration that asks for a kind of device.
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

/// Returns the path of the first plug-in that is for chips of this kind, or whose kind is unknown;
/// "" if there is none.
std::string plugin_for(DeviceKind kind, const DeviceMachine& machine) {
  for (const pjrt::PluginFile& file : pjrt::find_plugins(machine.variable)) {
    if (file.kind.value_or(kind) == kind) return file.path;
  }
  return "";
}

/// Describes where a device was looked for, such as "a TPU (/dev/accel0, /dev/vfio: absent)".
std::string looked_for(DeviceKind kind, const DeviceMachine& machine) {
  const bool is_tpu = kind == DeviceKind::tpu;
  const std::vector<std::string> files = is_tpu
                                             ? std::vector<std::string>{"/dev/accel0", "/dev/vfio"}
                                             : std::vector<std::string>{"/dev/nvidia0", "/dev/kfd"};
  std::vector<std::string> found;
  std::error_code ignored;
  for (const std::string& file : files) {
    if (std::filesystem::exists(machine.root + file, ignored)) found.push_back(file);
  }
  const char* const name = is_tpu ? "TPU" : "GPU";
  if (found.empty()) return fmt::format("a {} ({}: absent)", name, fmt::join(files, ", "));
  const std::string plugin = plugin_for(kind, machine);
  if (plugin.empty()) {
    return fmt::format("a {} ({}: present, but there is no PJRT plug-in for it)", name,
                       fmt::join(found, ", "));
  }
  return fmt::format(
      "a {} ({}: present, with the PJRT plug-in {}, but this version runs programs on CPUs only)",
      name, fmt::join(found, ", "), plugin);
}

/// Chooses the CPU of a plug-in. Throws unavailable if there is no plug-in.
DeviceChoice with_plugin(const Asked& asked, const DeviceMachine& machine) {
  const std::string plugin = plugin_for(DeviceKind::cpu, machine);
  if (plugin.empty()) {
    fail(Errc::unavailable,
         "{}: there is no PJRT plug-in for CPUs; install one ({}), or name its file in "
         "WEFT_PJRT_PLUGIN (weft devices shows what there is)",
         asked.field, pjrt::install_command(DeviceKind::cpu));
  }
  return {.kind = DeviceKind::pjrt_cpu,
          .why = fmt::format("chips are devices of the PJRT plug-in {}: {}", plugin, asked.field)};
}

}  // namespace

DeviceChoice choose_device(const ScalingConfig& scaling, const DeviceMachine& machine) {
  const std::vector<Asked> asked = asked_for(scaling);
  for (const Asked& other : asked) {
    if (other.kind == asked.front().kind) continue;
    fail(Errc::invalid_argument, "{} asks for {} chips and {} for {} chips: expected one kind",
         asked.front().field, to_string(asked.front().kind), other.field, to_string(other.kind));
  }
  if (asked.empty()) {
    return {.why = fmt::format("chips are threads of the CPU: looked for {} and {}",
                               looked_for(DeviceKind::tpu, machine),
                               looked_for(DeviceKind::gpu, machine))};
  }
  if (asked.front().kind == DeviceKind::cpu) {
    return {.why = fmt::format("chips are threads of the CPU: {}", asked.front().field)};
  }
  if (asked.front().kind == DeviceKind::pjrt_cpu) return with_plugin(asked.front(), machine);
  fail(Errc::unavailable,
       "{}: looked for {}; on a machine that has one, this brings its plug-in: {}; without the "
       "request the same loop runs on threads of the CPU (weft devices shows what there is)",
       asked.front().field, looked_for(asked.front().kind, machine),
       pjrt::install_command(asked.front().kind));
}

}  // namespace weft
