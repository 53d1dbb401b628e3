#pragma once
/// Files of each format as batches for training, beside torch's DataLoader.

#include <string>
#include <vector>

#include "bench/table.hpp"

namespace weft::bench {

struct FormatsOptions {
  int rounds = 10;
  int items = 2000;  ///< of each format but idx, which is Fashion-MNIST
  int batch = 50;
  std::string torch = WEFT_SOURCE_DIR
      "/build/torch";  ///< the folder in which PyTorch, NumPy, Pillow and tokenizers are
};

/// Items and megabytes of files per second of an epoch, in the files' order: by weft with one and
/// two reading threads, by torch's DataLoader in its own process with no and two workers, by turns.
/// Each batch's first field is summed, by both, and the sums are compared first. The ratio is
/// weft's to torch's, of one thread to no workers and of two to two. Nothing, with a line on
/// stderr, if PyTorch isn't there.
std::vector<TableRow> measure_formats(const FormatsOptions& options);

}  // namespace weft::bench
