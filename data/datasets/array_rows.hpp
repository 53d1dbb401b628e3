#pragma once
/// Datasets whose items are the rows of arrays that lie in files or, unpacked, in memory.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <weft/dataset.hpp>

#include "data/datasets/elements.hpp"
#include "data/datasets/input_file.hpp"

namespace weft {

/// An array, row-major, that becomes a field.
struct StoredArray {
  std::string name{};
  Shape shape{};  ///< the first dim are the items
  ElementCast cast{};
  std::shared_ptr<const InputFile> file{};
  std::uint64_t data_begin = 0;       ///< in the file, or in `unpacked`
  std::vector<std::byte> unpacked{};  ///< empty: the data are in the file
  bool is_unpacked = false;
};

/// Throws invalid_argument for an array without dims, with empty items, or with another number of
/// items than the first.
DatasetPtr array_rows(std::string name, std::vector<StoredArray> arrays);

}  // namespace weft
