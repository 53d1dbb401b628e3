#pragma once
/// The same training under torchrun, whose ranks are killed.

#include <cstdint>
#include <string>
#include <vector>

namespace weft::bench {

struct TorchJob {
  int ranks = 4;
  int kills = 10;
  int save_every = 10;        ///< steps
  std::string interval = {};  ///< torchrun's --monitor_interval; "": its default
  std::string folder = {};    ///< empty, for the job's files
  std::uint64_t seed = 0;
};

struct TorchLoss {
  double stepped_ms = 0;  ///< from the kill to the end of the first step after it
  std::uint64_t steps_lost = 0;
};

/// Whether python3 has torchrun.
bool has_torch();
/// Throws timeout, or io where the job can't be run.
std::vector<TorchLoss> lose_torch_ranks(const TorchJob& job);

}  // namespace weft::bench
