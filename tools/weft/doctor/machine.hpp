#pragma once
/// What a machine has for jobs, as read.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/memory/open_files.hpp"

namespace weft {

inline constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

struct Machine {
  struct Shm {
    bool usable = false;  ///< segments can be made there
    std::uint64_t total_bytes = 0;
    std::uint64_t free_bytes = 0;
    std::string huge_pages{};  ///< as huge_pages_of_shm()
    int dead_jobs = 0;         ///< that have left segments
    std::uint64_t dead_bytes = 0;
  };
  struct Limits {
    OpenFiles files{};
    std::uint64_t processes = kNoLimit;  ///< threads of this user
    std::uint64_t processes_hard = kNoLimit;
    std::uint64_t threads = 0;            ///< that this user has
    std::uint64_t file_bytes = kNoLimit;  ///< the largest file
    std::uint64_t locked_bytes = kNoLimit;
  };
  struct Clock {
    bool has_tsc = false;  ///< x86
    bool constant = false;
    bool nonstop = false;
    std::string source{};  ///< of the kernel; "": unknown
  };

  Shm shm{};
  Limits limits{};
  int cores = 1;           ///< on which this process may run
  double quota_cores = 0;  ///< of its cgroup; 0: none
  std::uint64_t memory_available_bytes = 0;
  std::uint64_t memory_quota_bytes = kNoLimit;  ///< of its cgroup
  int numa_nodes = 0;                           ///< 0: unknown
  Clock clock{};
  std::optional<int> ptrace_scope{};        ///< of yama; absent: there is none
  std::vector<std::string> accelerators{};  ///< device files
};

/// This one. What can't be read stays as above.
Machine read_machine();

/// The cores of a cgroup's cpu.max ("200000 100000", or "max 100000": 0).
double parse_cpu_max(const std::string& text);

}  // namespace weft
