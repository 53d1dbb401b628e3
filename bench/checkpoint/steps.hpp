#pragma once
/// Measures how much async saves slow down the steps of a training.

#include <cstddef>
#include <string>
#include <vector>

#include "bench/table.hpp"

namespace weft::bench {

struct StepsOptions {
  std::size_t state_mib = 256;  ///< state that is saved in addition to the network
  int width = 256;              ///< width of the network's layers, which sets the length of a step
  int blocks = 20;              ///< number of blocks of each kind
  int steps = 1000;             ///< steps per block
  std::string folder = ".";     ///< a folder on the disk for the saves
};

/// Trains on `chips` chips of this process. Blocks in which a save is always in progress alternate
/// with blocks without saves, and with blocks during which a thread at idle priority writes as many
/// bytes as a save. The samples of each block are the median and the 99th percentile of its steps,
/// in microseconds. The ratio is the median of each block's ratio to its block without saves.
std::vector<TableRow> measure_steps(const StepsOptions& options, int chips);

}  // namespace weft::bench
