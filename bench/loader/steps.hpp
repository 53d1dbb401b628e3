#pragma once
/// Measures how long chips wait for a DeviceLoader's batches, and how long a step with slow data
/// takes.

#include <vector>

#include "bench/table.hpp"

namespace weft::bench {

struct StepsOptions {
  int rounds = 10;
  int steps = 100;      ///< steps per round, for each row of the table
  int batch = 256;      ///< rows in a batch, of 12 KiB each
  double data_ms = 10;  ///< milliseconds that slow data take for a batch
  double step_ms = 10;  ///< approximate computation time of a step on data in memory
  std::vector<double> compute_ms = {5, 10, 20};  ///< approximate computation times with slow data
};

/// Measures data in memory. Returns the milliseconds of a step, and the share of the step in which
/// the chips wait for data (LoaderWait; the host reads the result of each step, so that no later
/// step is computed meanwhile). It measures with a chip on each core but one, which is left to the
/// loader, and then with a chip on every core.
std::vector<TableRow> measure_waits(const StepsOptions& options);

/// Measures data that take data_ms for a batch. Returns the milliseconds of a step with each of
/// compute_ms. The ratio is to the longer one of two times: that of data alone and that of
/// computation alone.
std::vector<TableRow> measure_overlap(const StepsOptions& options);

}  // namespace weft::bench
