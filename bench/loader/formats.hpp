#pragma once
/// Measures reading files of each format as batches for training, beside torch's DataLoader.

#include <string>
#include <vector>

#include "bench/table.hpp"

namespace weft::bench {

struct FormatsOptions {
  int rounds = 10;
  int items = 2000;  ///< items of each format except idx, which is Fashion-MNIST
  int batch = 50;
  std::string torch =
      WEFT_SOURCE_DIR "/build/torch";  ///< folder of PyTorch, NumPy, Pillow and tokenizers
};

/// Returns items and megabytes of files per second of an epoch, in the files' order. weft uses one
/// and two reading threads; torch's DataLoader, in its own process, no worker and two workers; they
/// are measured in turn. Both sum the first field of each batch, and the sums are compared first.
/// The ratio is weft's speed to torch's, of one thread to no workers and of two to two. Returns
/// nothing, with a line on stderr, if PyTorch is missing.
std::vector<TableRow> measure_formats(const FormatsOptions& options);

}  // namespace weft::bench
