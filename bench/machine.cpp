#include "bench/machine.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

namespace weft::bench {
namespace {

using nlohmann::json;

std::string first_line(const std::filesystem::path& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

/// Returns the caches of core 0, such as {"L1 Data": "32K", "L2 Unified": "512K", ...}.
json caches() {
  json sizes = json::object();
  std::error_code missing;
  for (const auto& entry :
       std::filesystem::directory_iterator("/sys/devices/system/cpu/cpu0/cache", missing)) {
    if (!std::filesystem::exists(entry.path() / "level")) continue;
    const std::string name = fmt::format("L{} {}", first_line(entry.path() / "level"),
                                         first_line(entry.path() / "type"));
    sizes[name] = first_line(entry.path() / "size");
  }
  return sizes;
}

json machine() {
  utsname system{};
  uname(&system);
  return {{"cpu", cpu_model()},
          {"cores", sysconf(_SC_NPROCESSORS_ONLN)},
          {"kernel", fmt::format("{} {}", system.sysname, system.release)},
          {"caches", caches()},
          {"load", first_line("/proc/loadavg")}};
}

/// Returns the commit from which this program was built; "-dirty" means that the sources differ
/// from the commit.
std::string commit() {
  constexpr char kCommand[] =
      "git -C " WEFT_SOURCE_DIR " describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(kCommand, "r"), pclose);
  char line[128] = "";
  if (pipe == nullptr || std::fgets(line, sizeof(line), pipe.get()) == nullptr) return "unknown";
  return std::string(line, std::string_view(line).find('\n'));
}

/// Returns the smallest sample that is at least as large as a fraction `q` of the samples; `sorted`
/// must not be empty.
double quantile(const std::vector<double>& sorted, double q) {
  const auto rank = std::ceil(q * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

}  // namespace

json describe_run(const std::string& command) {
  return {{"commit", commit()},
          {"machine", machine()},
          {"command", command},
          {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))}};
}

std::string machine_line(const json& run) {
  const json& on = run.at("machine");
  const auto load = on.at("load").get<std::string>();
  return fmt::format("{} x {}, {}, load {}; commit {}, {}; {}", on.at("cores").get<int>(),
                     on.at("cpu").get<std::string>(), on.at("kernel").get<std::string>(),
                     load.substr(0, load.find(' ')), run.at("commit").get<std::string>(),
                     run.at("date").get<std::string>(), run.at("command").get<std::string>());
}

void write_report(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  std::ofstream file(path);
  file << text;
  if (!file.flush()) fail(Errc::io, "can't write {}", path);
}

double median(std::vector<double> samples) {
  std::ranges::sort(samples);
  const std::size_t half = samples.size() / 2;
  if (samples.size() % 2 != 0) return samples[half];
  return (samples.at(half - 1) + samples[half]) / 2;
}

json summarize(std::vector<double> samples) {
  if (samples.empty()) return nullptr;
  std::ranges::sort(samples);
  return {{"median", median(samples)},
          {"p90", quantile(samples, 0.9)},
          {"min", samples.front()},
          {"max", samples.back()}};
}

}  // namespace weft::bench
