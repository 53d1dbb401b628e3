#include "tools/weft/devices/devices.hpp"

#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspect/snapshot/json_text.hpp"
#include "inspect/views/table.hpp"
#include "tools/weft/devices/plugin_report.hpp"
#include "tools/weft/doctor/machine.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::seconds kAnswerLimit{60};

struct AskedPlugin {
  pjrt::PluginFile file;
  PluginReport report;
};

std::string gib(std::int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(1 << 30));
}

std::string memory_text(const ReportedDevice& device) {
  if (!device.used_bytes) return "the host's";
  if (!device.limit_bytes) return fmt::format("{} used", gib(*device.used_bytes));
  return fmt::format("{} of {} used", gib(*device.used_bytes), gib(*device.limit_bytes));
}

/// Returns the advice for accelerators that no plug-in drives.
std::vector<std::string> advice(const Machine& machine, const std::vector<AskedPlugin>& plugins) {
  std::vector<std::string> lines;
  for (const auto& [prefix, kind] :
       {std::pair("/dev/nvidia", DeviceKind::gpu), std::pair("/dev/accel", DeviceKind::tpu)}) {
    const bool is_there = std::ranges::any_of(
        machine.accelerators, [&](const std::string& file) { return file.starts_with(prefix); });
    const bool is_driven = std::ranges::any_of(
        plugins, [&](const AskedPlugin& plugin) { return plugin.file.kind == kind; });
    if (!is_there || is_driven) continue;
    lines.push_back(fmt::format("There is no plug-in for {}*; this brings one: {}", prefix,
                                pjrt::install_command(kind)));
  }
  if (plugins.empty()) {
    lines.push_back(fmt::format("There is no PJRT plug-in. One for this machine's CPU: {}",
                                pjrt::install_command(DeviceKind::cpu)));
  }
  return lines;
}

void print(const Machine& machine, const std::vector<AskedPlugin>& plugins) {
  Table table({{"device"}, {"platform"}, {"memory"}, {"driven by"}});
  table.add({fmt::format("{} cores", machine.cores), "cpu",
             gib(static_cast<std::int64_t>(machine.memory_available_bytes)) + " free", "weft"});
  for (const auto& [file, report] : plugins) {
    const std::string version =
        report.version.empty() || report.version == report.platform ? "" : " " + report.version;
    const std::string driver = fmt::format("{} (API {})", file.path, report.api);
    for (const ReportedDevice& device : report.devices) {
      table.add({fmt::format("{} {}", device.kind, device.id), report.platform + version,
                 memory_text(device), driver});
    }
    if (!report.error.empty()) table.add({"none", "can't be used", "", file.path});
  }
  table.print();
  for (const auto& [file, report] : plugins) {
    if (!report.error.empty()) fmt::print("\n{} can't be used: {}\n", file.path, report.error);
  }
  for (const std::string& line : advice(machine, plugins)) fmt::print("\n{}\n", line);
}

void print_json(const Machine& machine, const std::vector<AskedPlugin>& plugins) {
  Json json{{"schema", "weft.devices/1"},
            {"cores", machine.cores},
            {"accelerators", machine.accelerators},
            {"plugins", Json::array()}};
  for (const auto& [file, report] : plugins) {
    Json& plugin = json["plugins"].emplace_back(Json{{"path", file.path},
                                                     {"found_by", file.found_by},
                                                     {"platform", report.platform},
                                                     {"version", report.version},
                                                     {"api", report.api},
                                                     {"error", report.error},
                                                     {"devices", Json::array()}});
    for (const ReportedDevice& device : report.devices) {
      Json& one = plugin["devices"].emplace_back(Json{{"id", device.id}, {"kind", device.kind}});
      if (device.used_bytes) one["used_bytes"] = *device.used_bytes;
      if (device.limit_bytes) one["limit_bytes"] = *device.limit_bytes;
    }
  }
  fmt::print("{}", json_text(json));
}

}  // namespace

void add_devices(CLI::App& app, int& code) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("devices", "list this machine's chips and their plug-ins");
  command->add_flag("--json", *json, "as JSON");
  command->footer(
      "Examples:\n"
      "  weft devices\n"
      "  WEFT_PJRT_PLUGIN=./plugin.so weft devices\n"
      "\n"
      "The exit code is 0, or 1 if a plug-in that was found can't be used.");
  command->callback([json, &code] {
    const Machine machine = read_machine();
    std::vector<AskedPlugin> plugins;
    for (const pjrt::PluginFile& file : pjrt::find_plugins()) {
      plugins.push_back({file, report_of(file, kAnswerLimit)});
      if (!plugins.back().report.error.empty()) code = 1;
    }
    *json ? print_json(machine, plugins) : print(machine, plugins);
  });
}

}  // namespace weft
