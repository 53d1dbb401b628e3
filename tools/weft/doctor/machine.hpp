#pragma once
/// Reads the facts about a machine that matter for jobs.

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
    std::string huge_pages{};  ///< as huge_pages_of_shm() returns it
    int dead_jobs = 0;         ///< dead jobs that have left segments
    std::uint64_t dead_bytes = 0;
  };
  struct Limits {
    OpenFiles files{};
    std::uint64_t processes = kNoLimit;  ///< limit on the threads of this user
    std::uint64_t processes_hard = kNoLimit;
    std::uint64_t threads = 0;            ///< threads that this user has
    std::uint64_t file_bytes = kNoLimit;  ///< the largest file
    std::uint64_t locked_bytes = kNoLimit;
  };
  struct Clock {
    bool has_tsc = false;  ///< on x86
    bool constant = false;
    bool nonstop = false;
    std::string source{};  ///< the kernel's; "": unknown
  };

  Shm shm{};
  Limits limits{};
  int cores = 1;           ///< cores on which this process may run
  double quota_cores = 0;  ///< quota of this process's cgroup; 0: none
  std::uint64_t memory_available_bytes = 0;
  std::uint64_t memory_quota_bytes = kNoLimit;  ///< quota of this process's cgroup
  int numa_nodes = 0;                           ///< 0: unknown
  Clock clock{};
  std::optional<int> ptrace_scope{};        ///< yama's; absent: there is none
  std::vector<std::string> accelerators{};  ///< device files
};

/// Reads the facts about this machine. Facts that can't be read keep the values above.
Machine read_machine();

/// Returns the cores of a cgroup's cpu.max ("200000 100000": 2; "max 100000": 0).
double parse_cpu_max(const std::string& text);

}  // namespace weft
