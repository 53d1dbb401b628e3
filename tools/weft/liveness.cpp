#include <weft/tools/weft/liveness.hpp>

#include <unistd.h>

#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr double kToleranceSeconds = 2;

double now_s(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

struct ProcessStat {
  char state = 'X';
  double start_ticks = 0;  ///< since the boot
};

/// Parses /proc/<pid>/stat, "pid (name) state ...": a name may hold blanks and parentheses.
ProcessStat parse_stat(const std::string& line) {
  constexpr int kFieldsBetween = 18;  // state is the third, the start time the 22nd
  ProcessStat stat;
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) return stat;
  std::istringstream fields(line.substr(name_end + 1));
  fields >> stat.state;
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
  fields >> stat.start_ticks;
  return stat;
}

}  // namespace

bool runs_since(int pid, std::int64_t unix_ns) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const ProcessStat stat = parse_stat({std::istreambuf_iterator<char>(file), {}});
  if (stat.state == 'X' || stat.state == 'Z') return false;
  const double boot_unix_s = now_s(CLOCK_REALTIME) - now_s(CLOCK_BOOTTIME);
  const double start_unix_s =
      boot_unix_s + stat.start_ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return start_unix_s <= static_cast<double>(unix_ns) / 1e9 + kToleranceSeconds;
}

}  // namespace weft
