#pragma once
/// Deals cores to workers: `weft launch --bind cores`.

#include <string>
#include <vector>

namespace weft {

/// A CPU and its place in the machine. CPUs with the same core are hardware threads of that core.
struct CpuPlace {
  int cpu = 0;
  int package = 0;
  int core = 0;
};

/// Returns each worker's CPUs. They are neighbours, and no two workers share a core. If the cores
/// can't be dealt evenly, the first workers get one core more. Throws invalid_argument if there are
/// fewer cores than workers.
std::vector<std::vector<int>> deal_cores(std::vector<CpuPlace> cpus, int workers);

/// Reads the places of these CPUs from /sys. A CPU of which /sys has no entry counts as a core of
/// its own.
std::vector<CpuPlace> places_of(const std::vector<int>& cpus);

/// The CPUs on which the calling thread may run.
std::vector<int> own_cpus();

/// Returns a text such as "0-3,8".
std::string text_of_cpus(const std::vector<int>& cpus);

}  // namespace weft
