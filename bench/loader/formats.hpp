#pragma once
/// Measures how fast files of each format are read as batches for training, in comparison with
/// torch's DataLoader.

#include <string>
#include <vector>

#include "bench/table.hpp"

namespace weft::bench {

struct FormatsOptions {
  int rounds = 10;
  int items = 2000;  ///< the number of items of each format except idx, which is Fashion-MNIST
  int batch = 50;
  std::string torch =
      WEFT_SOURCE_DIR "/build/torch";  ///< the folder of PyTorch, NumPy, Pillow and tokenizers
};

/// Measures items per second and megabytes of files per second, over an epoch in the files' order.
/// weft uses one and two reading threads. torch's DataLoader, in its own process, uses no worker
/// and two workers. weft and torch are measured in turn. Both add up the first field of each batch;
/// before the measurement, these sums are compared. The ratio is weft's speed divided by torch's:
/// one thread is compared with no workers, two threads with two workers. If PyTorch is missing,
/// prints a line on stderr and returns nothing.
std::vector<TableRow> measure_formats(const FormatsOptions& options);

}  // namespace weft::bench
