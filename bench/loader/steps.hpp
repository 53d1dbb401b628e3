#pragma once
/// Measures how long chips wait for a DeviceLoader's batches, and how long a step with slow data
/// takes.

#include <vector>

#include "bench/table.hpp"

namespace weft::bench {

struct StepsOptions {
  int rounds = 10;
  int steps = 100;      ///< the number of steps per round, for each row of the table
  int batch = 256;      ///< rows in a batch; each has 12 KiB
  double data_ms = 10;  ///< milliseconds that a batch of slow data takes
  double step_ms = 10;  ///< approximate milliseconds of a step's computation on data in memory
  std::vector<double> compute_ms = {5, 10, 20};  ///< approximate milliseconds with slow data
};

/// Measures data in memory. Returns the milliseconds of a step, and the share of the step in which
/// the chips wait for data (LoaderWait; the host reads the result of each step, so that no later
/// step is computed meanwhile). Measures first with a chip on each core except one, which is left
/// to the loader, and then with a chip on every core.
std::vector<TableRow> measure_waits(const StepsOptions& options);

/// Measures slow data, which take data_ms for a batch. Returns the milliseconds of a step for each
/// of compute_ms. The ratio is to the longer one of two times: that of the data alone and that of
/// the computation alone.
std::vector<TableRow> measure_overlap(const StepsOptions& options);

}  // namespace weft::bench
