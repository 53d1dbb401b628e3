#pragma once
/// Measures how long chips wait for a DeviceLoader's batches, and how long a step with slow data
/// takes.

#include <vector>

#include "bench/table.hpp"

namespace weft::bench {

struct StepsOptions {
  int rounds = 10;
  int steps = 100;      ///< steps of a round, for each row
  int batch = 256;      ///< rows of 12 KiB
  double data_ms = 10;  ///< time that slow data takes for a batch
  double step_ms = 10;  ///< approximate computation time beside data in memory
  std::vector<double> compute_ms = {5, 10, 20};  ///< approximate computation times beside slow data
};

/// Measures data in memory. Returns milliseconds of a step, and the share of it in which the chips
/// wait for data (LoaderWait; the host reads each step, so that no later one is computed
/// meanwhile). It measures as many chips as leave a core to the loader, and one chip on every core.
std::vector<TableRow> measure_waits(const StepsOptions& options);

/// Measures data that take data_ms for a batch. Returns milliseconds of a step with each
/// computation. The ratio is to the longer time of data alone and computation alone.
std::vector<TableRow> measure_overlap(const StepsOptions& options);

}  // namespace weft::bench
