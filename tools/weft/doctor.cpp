#include "tools/weft/doctor.hpp"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "inspect/views/table.hpp"
#include "transport/memory/huge_pages.hpp"
#include "transport/memory/open_files.hpp"
#include "transport/memory/wait.hpp"

namespace weft {
namespace {

constexpr char kShm[] = "/dev/shm";
constexpr std::size_t kMiB = std::size_t{1} << 20;
/// What Docker gives a container unasked is 64 MiB.
constexpr std::size_t kSmallShmBytes = 1024 * kMiB;
/// More are refused on one host.
constexpr int kWorkersMax = 256;

struct Finding {
  std::string what;
  std::string found;
  std::string advice = {};  ///< empty: all is well
};

/// Sets `usable` to whether segments can be made there.
Finding look_at_shm(bool& usable) {
  struct statvfs folder {};
  usable = statvfs(kShm, &folder) == 0 && access(kShm, W_OK | X_OK) == 0;
  if (!usable) {
    return {kShm, "can't be written to",
            "no job can run: mount -t tmpfs -o mode=1777 tmpfs /dev/shm"};
  }
  const std::size_t total_bytes = folder.f_blocks * folder.f_frsize;
  const std::size_t free_bytes = folder.f_bavail * folder.f_frsize;
  Finding finding{kShm, fmt::format("{} of {} MiB free", free_bytes / kMiB, total_bytes / kMiB)};
  if (free_bytes < kSmallShmBytes) {
    const std::size_t wanted_mib = (total_bytes - free_bytes + kSmallShmBytes) / kMiB;
    finding.advice = fmt::format(
        "little: mount -o remount,size={}m {}, or in a container docker run --shm-size={}m",
        wanted_mib, kShm, wanted_mib);
  }
  return finding;
}

Finding look_at_huge_pages() {
  Finding finding{"huge pages", fmt::format("{} in {}", huge_pages_of_shm(), kShm)};
  if (huge_pages_of_shm() == "never") {
    finding.advice = fmt::format(
        "mount -o remount,huge=advise {} (as root) makes the first touch of memory faster", kShm);
  }
  return finding;
}

Finding look_at_nodes() {
  std::error_code none;
  const auto is_node = [](const std::filesystem::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    return name.starts_with("node") && name.find_first_not_of("0123456789", 4) == name.npos;
  };
  const auto count = std::ranges::count_if(
      std::filesystem::directory_iterator("/sys/devices/system/node", none), is_node);
  return {"NUMA nodes", count > 0 ? std::to_string(count) : "unknown"};
}

/// Clears `usable` where the smallest job can't open its files.
Finding look_at_open_files(bool& usable) {
  const OpenFiles files = count_open_files();
  const auto needed = [&](int workers) {
    return files.open + open_files_of_job(workers, workers, false);
  };
  int workers = 0;
  while (workers < kWorkersMax && needed(workers + 1) <= files.limit) ++workers;
  Finding finding{"open files",
                  fmt::format("{} allowed: up to {} workers of a chip", files.limit, workers)};
  if (workers == 0) usable = false;
  const int wanted = std::clamp(usable_cores(), 1, kWorkersMax);
  if (workers < wanted) {
    finding.advice =
        fmt::format("{}a worker for each core needs {}: {}", workers == 0 ? "no job can run: " : "",
                    needed(wanted), how_to_allow_open_files(needed(wanted), files));
  }
  return finding;
}

}  // namespace

void add_doctor(CLI::App& app, int& code) {
  CLI::App* command = app.add_subcommand("doctor", "say what this machine has for jobs");
  command->callback([&code] {
    bool usable = false;
    Table table({{"what"}, {"found"}, {"advice"}});
    for (const Finding& finding :
         {look_at_shm(usable), look_at_open_files(usable), look_at_huge_pages(), look_at_nodes(),
          Finding{"cores", fmt::format("{} usable", usable_cores())}}) {
      table.add({finding.what, finding.found, finding.advice});
    }
    table.print();
    code = usable ? 0 : 1;
  });
}

}  // namespace weft
