#pragma once
/// Runs the same training as training.hpp under torchrun, and kills its ranks.

#include <cstdint>
#include <string>
#include <vector>

namespace weft::bench {

struct TorchJob {
  int ranks = 4;
  int kills = 10;
  int save_every = 10;        ///< the number of steps between two checkpoints
  std::string interval = {};  ///< torchrun's --monitor_interval; "": its default
  std::string folder = {};    ///< an empty folder for the job's files
  std::uint64_t seed = 0;
};

struct TorchLoss {
  double stepped_ms = 0;  ///< the time from the kill to the end of the next step
  std::uint64_t steps_lost = 0;
};

/// Returns whether python3 has torchrun.
bool has_torch();
/// Runs the job and kills ranks. Throws timeout, and io if the job can't be run.
std::vector<TorchLoss> lose_torch_ranks(const TorchJob& job);

}  // namespace weft::bench
