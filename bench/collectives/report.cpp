#include <weft/bench/collectives/report.hpp>

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

/// Of core 0: {"L1 Data": "32K", "L2 Unified": "512K", ...}.
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

/// Of the sources that this program was built from; "-dirty": not of a commit.
std::string commit() {
  constexpr char kCommand[] =
      "git -C " WEFT_SOURCE_DIR " describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(kCommand, "r"), pclose);
  char line[128] = "";
  if (pipe == nullptr || std::fgets(line, sizeof(line), pipe.get()) == nullptr) return "unknown";
  return std::string(line, std::string_view(line).find('\n'));
}

/// Of the rows in the same metric and state: weft's, and that of the fastest peer that was right.
/// Null: there is none.
struct Rivals {
  const Row* weft = nullptr;
  const Row* best_peer = nullptr;
};

Rivals rivals_of(const Row& row, std::span<const Row> rows) {
  Rivals rivals;
  for (const Row& other : rows) {
    if (other.metric != row.metric || other.state != row.state) continue;
    if (other.implementation == "weft") {
      rivals.weft = &other;
    } else if (other.implementation != "limit" && other.verified.value_or(true) &&
               (rivals.best_peer == nullptr || other.median_us < rivals.best_peer->median_us)) {
      rivals.best_peer = &other;
    }
  }
  return rivals;
}

std::string percent_of_limit(const Row& row) {
  if (!row.limit_us || row.implementation == "limit") return "";
  return fmt::format("{:.0f} %", 100 * *row.limit_us / row.median_us);
}

}  // namespace

void print_rows(std::span<const Row> rows) {
  const Row* previous = nullptr;
  for (const Row& row : rows) {
    if (previous == nullptr || previous->metric != row.metric || previous->state != row.state) {
      fmt::print("\n{:<44}{:>11}{:>11}{:>11}{:>9}{:>9}\n",
                 fmt::format("{} {} B, {} ranks, {}, {}", to_string(row.op), row.bytes, row.ranks,
                             row.metric, row.state),
                 "median us", "min", "max", "limit", "/ weft");
    }
    const Rivals rivals = rivals_of(row, rows);
    const bool compared = rivals.weft != nullptr && rivals.weft != &row;
    const std::string setting = row.setting.empty() ? "" : fmt::format(" ({})", row.setting);
    fmt::print("  {:<42}{:>11.3f}{:>11.3f}{:>11.3f}{:>9}{:>9}{}\n",
               row.implementation + setting + (row.verified.value_or(true) ? "" : " WRONG"),
               row.median_us, row.min_us, row.max_us, percent_of_limit(row),
               compared ? fmt::format("{:.2f}", row.median_us / rivals.weft->median_us) : "",
               rivals.best_peer == &row ? " *" : "");
    previous = &row;
  }
  std::fflush(stdout);
}

json report(std::span<const Row> rows, const std::string& command) {
  json results = json::array();
  for (const Row& row : rows) {
    results.push_back({{"op", to_string(row.op)},
                       {"bytes", row.bytes},
                       {"ranks", row.ranks},
                       {"implementation", row.implementation},
                       {"setting", row.setting},
                       {"metric", row.metric},
                       {"state", row.state},
                       {"median_us", row.median_us},
                       {"min_us", row.min_us},
                       {"max_us", row.max_us},
                       {"batches", row.batches},
                       {"limit_us", row.limit_us ? json(*row.limit_us) : json()},
                       {"verified", row.verified ? json(*row.verified) : json()}});
  }
  return {{"commit", commit()},
          {"machine", machine()},
          {"command", command},
          {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
          {"results", std::move(results)}};
}

}  // namespace weft::bench
