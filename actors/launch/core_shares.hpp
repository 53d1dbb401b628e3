#pragma once
/// Cores dealt to workers: `weft launch --bind cores`.

#include <string>
#include <vector>

namespace weft {

/// A CPU and where it sits; CPUs of one core are threads of it.
struct CpuPlace {
  int cpu = 0;
  int package = 0;
  int core = 0;
};

/// Each worker's CPUs: neighbours, and no core for two workers. The first workers get one core
/// more where the cores can't be dealt evenly. Throws invalid_argument if there are fewer cores
/// than workers.
std::vector<std::vector<int>> deal_cores(std::vector<CpuPlace> cpus, int workers);

/// Where these CPUs sit, as /sys says; each a core of its own where it says nothing.
std::vector<CpuPlace> places_of(const std::vector<int>& cpus);

/// The CPUs on which the calling thread may run.
std::vector<int> own_cpus();

/// "0-3,8".
std::string text_of_cpus(const std::vector<int>& cpus);

}  // namespace weft
