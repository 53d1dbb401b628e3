#pragma once
/// Distributes cores among workers, for `weft launch --bind cores`.

#include <string>
#include <vector>

namespace weft {

/// A CPU and its place in the machine. CPUs with the same package and core are hardware threads of
/// that core.
struct CpuPlace {
  int cpu = 0;
  int package = 0;
  int core = 0;
};

/// Returns each worker's CPUs. The CPUs of a worker are neighbors, and no two workers share a core.
/// If the cores can't be divided evenly, the first workers get one core more. Throws
/// invalid_argument if there are fewer cores than workers.
std::vector<std::vector<int>> deal_cores(std::vector<CpuPlace> cpus, int workers);

/// Reads the places of these CPUs from /sys. A CPU without an entry in /sys counts as a separate
/// core.
std::vector<CpuPlace> places_of(const std::vector<int>& cpus);

/// Returns the CPUs on which the calling thread may run.
std::vector<int> own_cpus();

/// Returns a text such as "0-3,8".
std::string text_of_cpus(const std::vector<int>& cpus);

}  // namespace weft
