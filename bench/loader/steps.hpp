#pragma once
/// How long chips wait for a DeviceLoader's batches, and what a step with slow data takes.

#include <vector>

#include "bench/table.hpp"

namespace weft::bench {

struct StepsOptions {
  int rounds = 10;
  int steps = 100;      ///< of a round, for each row
  int batch = 256;      ///< rows of 12 KiB
  double data_ms = 10;  ///< that slow data takes for a batch
  double step_ms = 10;  ///< the computation beside data at memory speed, about
  std::vector<double> compute_ms = {5, 10, 20};  ///< beside slow data, about
};

/// Data at memory speed: milliseconds of a step, and the share of it in which the chips wait for
/// data (LoaderWait; each step is read by the host, so that no later one is computed meanwhile).
/// With as many chips as leave a core to the loader, and with one on every core.
std::vector<TableRow> measure_waits(const StepsOptions& options);

/// Data that takes data_ms for a batch: milliseconds of a step with each computation. The ratio is
/// that to the longer one of data alone and computation alone.
std::vector<TableRow> measure_overlap(const StepsOptions& options);

}  // namespace weft::bench
