#pragma once
/// Makes datasets whose items are rows of arrays. The arrays are in files, or in memory if they
/// were unpacked.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <weft/data/dataset.hpp>

#include "data/datasets/elements.hpp"
#include "data/remote/input_file.hpp"

namespace weft {

/// A row-major array that becomes a field.
struct StoredArray {
  std::string name{};
  Shape shape{};  ///< the first dim is the number of items
  ElementCast cast{};
  std::shared_ptr<const InputFile> file{};
  std::uint64_t data_begin = 0;       ///< offset in the file, or in `unpacked`
  std::vector<std::byte> unpacked{};  ///< empty if the data is in the file
  bool is_unpacked = false;
};

/// Makes a dataset with one field for each array. Throws invalid_argument for an array without
/// dims, with empty items, or with a different number of items than the first array.
DatasetPtr array_rows(std::string name, std::vector<StoredArray> arrays);

}  // namespace weft
