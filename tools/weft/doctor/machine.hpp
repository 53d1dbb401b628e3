#pragma once
/// Machine: properties of this machine that matter for jobs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/memory/open_files.hpp"

namespace weft {

inline constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

struct Machine {
  struct Shm {
    bool usable = false;  ///< segments can be made in /dev/shm
    std::uint64_t total_bytes = 0;
    std::uint64_t free_bytes = 0;
    std::string huge_pages{};  ///< the result of huge_pages_of_shm()
    int dead_jobs = 0;         ///< dead jobs that have left segments
    std::uint64_t dead_bytes = 0;
  };
  struct Limits {
    OpenFiles files{};
    std::uint64_t processes = kNoLimit;  ///< the limit of threads of this user
    std::uint64_t processes_hard = kNoLimit;
    std::uint64_t threads = 0;            ///< the number of threads of this user
    std::uint64_t file_bytes = kNoLimit;  ///< the limit of the size of a file
    std::uint64_t locked_bytes = kNoLimit;
  };
  struct Clock {
    bool has_tsc = false;  ///< only x86 has a TSC
    bool constant = false;
    bool nonstop = false;
    std::string source{};  ///< the kernel's clock source; "": unknown
  };

  Shm shm{};
  Limits limits{};
  int cores = 1;           ///< cores on which this process may run
  double quota_cores = 0;  ///< the quota of this process's cgroup, in cores; 0: none
  std::uint64_t memory_available_bytes = 0;
  std::uint64_t memory_quota_bytes = kNoLimit;  ///< the quota of this process's cgroup
  int numa_nodes = 0;                           ///< 0: unknown
  Clock clock{};
  std::optional<int> ptrace_scope{};        ///< kernel.yama.ptrace_scope; absent without yama
  std::vector<std::string> accelerators{};  ///< device files of accelerators
};

/// Reads the properties of this machine. Those that can't be read keep the default values above.
Machine read_machine();

/// Parses a cgroup's cpu.max; returns the number of cores ("200000 100000": 2; "max 100000": 0).
double parse_cpu_max(const std::string& text);

}  // namespace weft
