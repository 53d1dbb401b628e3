#include "actors/process/device_choice.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
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

/// Returns the path of the plug-in that find_plugin() finds; "" if there is none.
std::string plugin_for(DeviceKind kind, const DeviceMachine& machine, bool was_asked) {
  const auto file = pjrt::find_plugin(kind, !was_asked, machine.variable);
  return file ? file->path : "";
}

/// A kind of accelerator, and how it is found.
struct Accelerator {
  DeviceKind kind;
  const char* name;
  const char* numbered;  ///< the name in /dev of each device's file, without its number
  const char* other;     ///< the name in /dev of a file that other such devices share
};
constexpr Accelerator kAccelerators[] = {
    {DeviceKind::tpu, "TPU", "accel", "vfio"},
    {DeviceKind::gpu, "GPU", "nvidia", "kfd"},
};

/// Describes the accelerators of a kind, as far as weft can tell without opening one.
struct Look {
  std::string text;  ///< such as "a TPU (/dev/accel0, /dev/vfio: absent)"
  std::string plugin{};
  std::optional<int> count{};  ///< devices that a process may see; nothing if it isn't known
  bool is_there = false;       ///< there is a device, and a plug-in for it
};

bool exists(const DeviceMachine& machine, const std::string& file) {
  std::error_code ignored;
  return std::filesystem::exists(machine.root + file, ignored);
}

/// Returns the number of devices that the variable shows; nothing if it isn't set. A list ends at
/// the first entry that names no device, such as -1.
std::optional<int> count_shown(const char* list) {
  if (list == nullptr) return std::nullopt;
  int count = 0;
  for (std::string_view rest = list; !rest.empty() && rest[0] != '-' && rest[0] != ','; ++count) {
    rest.remove_prefix(std::min(rest.find(','), rest.size() - 1) + 1);
  }
  return count;
}

/// Returns the models of the machine's GPUs, such as "NVIDIA A100-SXM4-80GB", as far as NVIDIA's
/// driver tells them without being opened.
std::vector<std::string> gpu_models(const DeviceMachine& machine) {
  std::vector<std::string> models;
  std::error_code error;
  const std::string folder = machine.root + "/proc/driver/nvidia/gpus";
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    std::ifstream file(at->path() / "information");
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with("Model:")) continue;
      models.push_back(line.substr(std::min(line.find_first_not_of(" \t", 6), line.size())));
    }
  }
  return models;
}

/// Returns whether the model's name has the word. "A10" isn't in "A100", but "80G" is in "80GB".
bool has_word(std::string_view model, std::string_view word) {
  for (std::size_t at = model.find(word); at != std::string_view::npos;
       at = model.find(word, at + 1)) {
    const std::string_view rest = model.substr(at + word.size());
    const bool is_memory = word.ends_with('G') && rest.starts_with('B');
    const bool ends = rest.empty() || !std::isalnum(static_cast<unsigned char>(rest[0]));
    if (ends || is_memory) return true;
  }
  return false;
}

/// Throws unavailable if the machine's GPUs are of another type than `type`, such as "A100" or
/// "A100-80G". Any type passes if the machine doesn't say its GPUs' types.
void require_type(const std::string& type, const DeviceMachine& machine) {
  if (type.empty() || type == "GPU" || type.starts_with("TPU")) return;
  const std::vector<std::string> models = gpu_models(machine);
  const auto is_of_type = [&](const std::string& model) {
    for (std::string_view rest = type; !rest.empty();) {
      const std::size_t end = std::min(rest.find('-'), rest.size());
      if (!has_word(model, rest.substr(0, end))) return false;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return true;
  };
  if (models.empty() || std::ranges::any_of(models, is_of_type)) return;
  fail(Errc::unavailable,
       "scaling.accelerator_type = \"{}\": the machine has {}; ask for one of these, or leave "
       "accelerator_type out for any GPU",
       type, fmt::join(models, ", "));
}

/// Returns the files of the devices that have one of their own, the least number first. A container
/// may have some of the machine's devices, with their numbers there.
std::vector<std::string> numbered_files(const Accelerator& accelerator,
                                        const DeviceMachine& machine) {
  std::map<std::string, std::string> files;  // key: the number, padded so that it sorts as one
  std::error_code error;
  const std::string_view name = accelerator.numbered;
  for (std::filesystem::directory_iterator at(machine.root + "/dev", error), end;
       !error && at != end; at.increment(error)) {
    const std::string file = at->path().filename();
    if (!file.starts_with(name) || file.size() == name.size()) continue;
    const std::string number = file.substr(name.size());
    if (number.find_first_not_of("0123456789") != std::string::npos) continue;
    files.emplace(std::string(20 - std::min<std::size_t>(number.size(), 20), '0') + number, file);
  }
  std::vector<std::string> sorted;
  for (const auto& [number, file] : files) sorted.push_back("/dev/" + file);
  return sorted;
}

Look look_for(const Accelerator& accelerator, const DeviceMachine& machine, bool was_asked) {
  const char* const name = accelerator.name;
  const std::string other = fmt::format("/dev/{}", accelerator.other);
  const std::vector<std::string> numbered = numbered_files(accelerator, machine);
  std::vector<std::string> found;
  if (!numbered.empty()) found.push_back(numbered.front());
  if (exists(machine, other)) found.push_back(other);
  if (found.empty()) {
    return {.text = fmt::format("a {} (/dev/{}0, {}: absent)", name, accelerator.numbered, other)};
  }
  const std::string present = fmt::format("a {} ({}: present", name, fmt::join(found, ", "));
  const char* const variable = pjrt::visibility_variable(accelerator.kind);
  const char* const list = machine.variable(variable);
  const std::optional<int> shown = count_shown(list);
  if (shown == 0) {
    return {.text = fmt::format("{}, but {} = \"{}\" hides it)", present, variable, list)};
  }
  Look look{.text = present, .plugin = plugin_for(accelerator.kind, machine, was_asked)};
  if (look.plugin.empty()) {
    look.text += ", but there is no PJRT plug-in for it)";
    return look;
  }
  look.text += fmt::format(", with the PJRT plug-in {})", look.plugin);
  if (!numbered.empty()) look.count = static_cast<int>(numbered.size());
  if (shown) look.count = std::min(shown.value(), look.count.value_or(*shown));
  look.is_there = true;
  return look;
}

/// Returns why a job can't run on accelerators that are there; "" if it can.
std::string misfit(const Accelerator& accelerator, const Look& look, const DeviceDemand& demand) {
  if (demand.num_workers > 1) {
    return fmt::format("the job has {} workers, and one worker drives all {}s of a job",
                       demand.num_workers, accelerator.name);
  }
  if (look.count && *look.count < demand.chips_per_worker) {
    return fmt::format("the job has {} chips, and {} {}s are visible", demand.chips_per_worker,
                       *look.count, accelerator.name);
  }
  return "";
}

DeviceChoice accelerator_choice(const Accelerator& accelerator, const Look& look,
                                const std::string& reason) {
  return {.kind = accelerator.kind,
          .why = fmt::format("chips are {}s, driven by the PJRT plug-in {}: {}", accelerator.name,
                             look.plugin, reason)};
}

/// Chooses the accelerators that a field asks for.
DeviceChoice asked_accelerator(const Asked& asked, const DeviceDemand& demand,
                               const DeviceMachine& machine) {
  const Accelerator& accelerator =
      *std::ranges::find(kAccelerators, asked.kind, &Accelerator::kind);
  const Look look = look_for(accelerator, machine, true);
  if (!look.is_there) {
    fail(Errc::unavailable,
         "{}: looked for {}; on a machine that has one, this brings its plug-in: {}; without the "
         "request the same loop runs on threads of the CPU (weft devices shows what there is)",
         asked.field, look.text, pjrt::install_command(asked.kind));
  }
  const std::string reason = misfit(accelerator, look, demand);
  if (!reason.empty()) {
    fail(Errc::invalid_argument,
         "{}: {}: set scaling.num_workers to 1, and scaling.chips_per_worker to the number of {}s",
         asked.field, reason, accelerator.name);
  }
  return accelerator_choice(accelerator, look, asked.field);
}

DeviceChoice automatic_choice(const DeviceDemand& demand, const DeviceMachine& machine) {
  std::string looked;
  for (const Accelerator& accelerator : kAccelerators) {
    const Look look = look_for(accelerator, machine, false);
    std::string reason;
    if (look.is_there) {
      reason = demand.is_in_trainer ? "the loop runs in the trainer's process, which would keep it"
                                    : misfit(accelerator, look, demand);
    }
    looked += (looked.empty() ? "looked for " : " and ") + look.text;
    if (look.is_there && reason.empty()) return accelerator_choice(accelerator, look, looked);
    if (!reason.empty()) looked += ", but " + reason;
  }
  return {.why = "chips are threads of the CPU: " + looked};
}

/// Chooses the CPU of a plug-in. Throws unavailable if there is no plug-in.
DeviceChoice with_plugin(const Asked& asked, const DeviceDemand& demand,
                         const DeviceMachine& machine) {
  if (asked.kind == DeviceKind::pjrt_mirrored && demand.num_workers > 1) {
    fail(Errc::invalid_argument,
         "{} with scaling.num_workers = {}: one worker drives all such chips: set "
         "scaling.num_workers to 1",
         asked.field, demand.num_workers);
  }
  const std::string plugin = plugin_for(DeviceKind::cpu, machine, true);
  if (plugin.empty()) {
    fail(Errc::unavailable,
         "{}: there is no PJRT plug-in for CPUs; install one ({}), or name its file in "
         "WEFT_PJRT_PLUGIN (weft devices shows what there is)",
         asked.field, pjrt::install_command(DeviceKind::cpu));
  }
  return {.kind = asked.kind,
          .why = fmt::format("chips are devices of the PJRT plug-in {}: {}", plugin, asked.field)};
}

}  // namespace

DeviceChoice choose_device(const ScalingConfig& scaling, const DeviceDemand& demand,
                           const DeviceMachine& machine) {
  const std::vector<Asked> asked = asked_for(scaling);
  for (const Asked& other : asked) {
    if (other.kind == asked.front().kind) continue;
    fail(Errc::invalid_argument, "{} asks for {} chips and {} for {} chips: expected one kind",
         asked.front().field, to_string(asked.front().kind), other.field, to_string(other.kind));
  }
  if (asked.empty()) return automatic_choice(demand, machine);
  switch (asked.front().kind) {
    case DeviceKind::pjrt_cpu:
    case DeviceKind::pjrt_mirrored: return with_plugin(asked.front(), demand, machine);
    case DeviceKind::gpu:
    case DeviceKind::tpu:
      require_type(scaling.accelerator_type, machine);
      return asked_accelerator(asked.front(), demand, machine);
    case DeviceKind::cpu:
    case DeviceKind::automatic: break;
  }
  return {.why = fmt::format("chips are threads of the CPU: {}", asked.front().field)};
}

}  // namespace weft
