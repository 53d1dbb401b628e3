#pragma once
/// What it takes to write a checkpoint of four chips and to read it, beside what the disk does for
/// dd, what torch does with the same tensors, and what pread() does with the same files.

#include <cstddef>
#include <string>
#include <vector>

#include "bench/table.hpp"

namespace weft::bench {

struct FilesOptions {
  std::size_t mib = 1024;  ///< the checkpoint's size, a multiple of 16
  int rounds = 5;
  int threads = 4;
  std::string folder = ".";  ///< on the disk to be measured
};

/// Seconds; the ratio of a write is that of the better dd to it, of a read that of pread(). Memory
/// that is read to was there before, but for torch's. Throws corrupt if other tensors were read.
std::vector<TableRow> measure_files(const FilesOptions& options);

}  // namespace weft::bench
