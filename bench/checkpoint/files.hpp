#pragma once
/// Measures how fast a checkpoint of four chips is written and read. For comparison, measures dd on
/// the same disk, torch with the same tensors, and pread() with the same files.

#include <cstddef>
#include <string>
#include <vector>

#include "bench/table.hpp"

namespace weft::bench {

struct FilesOptions {
  std::size_t mib = 1024;  ///< the checkpoint's size, a multiple of 16
  int rounds = 5;
  int threads = 4;
  std::string folder = ".";  ///< a folder on the measured disk
};

/// Measures seconds. For a write, the ratio is the time of the faster dd divided by the time of the
/// write. For a read, it is the time of pread() divided by the time of the read. Except with torch,
/// reads go into memory that was used before. Throws corrupt if the tensors that were read differ.
std::vector<TableRow> measure_files(const FilesOptions& options);

}  // namespace weft::bench
