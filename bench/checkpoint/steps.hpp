#pragma once
/// What async saves cost the steps of a training.

#include <cstddef>
#include <string>
#include <vector>

#include "bench/table.hpp"

namespace weft::bench {

struct StepsOptions {
  std::size_t state_mib = 256;  ///< saved besides the network that is trained
  int width = 256;              ///< of the network's layers: the length of a step
  int blocks = 20;              ///< of each kind
  int steps = 1000;             ///< of a block
  std::string folder = ".";     ///< on the disk that is saved to
};

/// Trains on `chips` chips of this process, in blocks in which a save is always in progress, in
/// turn with blocks without one, and with blocks beside which a thread at idle priority writes as
/// many bytes as a save has. The samples are microseconds of the blocks, the median and the
/// p99 of the steps of each; the ratio is the median over the pairs of blocks.
std::vector<TableRow> measure_steps(const StepsOptions& options, int chips);

}  // namespace weft::bench
