#pragma once
/// Measures how much asynchronous saves slow down the steps of a training.

#include <cstddef>
#include <string>
#include <vector>

#include "bench/table.hpp"

namespace weft::bench {

struct StepsOptions {
  std::size_t state_mib = 256;  ///< the state that is saved in addition to the network
  int width = 256;              ///< width of the network's layers, which sets the length of a step
  int blocks = 20;              ///< the number of blocks of each kind
  int steps = 1000;             ///< the number of steps in a block
  std::string folder = ".";     ///< a folder on the disk for the saves
};

/// Trains on `chips` chips of this process. Three kinds of blocks alternate: with a save always in
/// progress, without saves, and with a thread at idle priority that writes as many bytes as a save.
/// The samples of each block are the median and the 99th percentile of its steps, in microseconds.
/// The ratio is the median of each block's ratio to its block without saves.
std::vector<TableRow> measure_steps(const StepsOptions& options, int chips);

}  // namespace weft::bench
