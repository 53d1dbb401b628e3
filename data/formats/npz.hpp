#pragma once
/// Reads and writes npz, the zip files in which NumPy stores arrays. The array NAME is the entry
/// NAME.npy.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <weft/tensor/type.hpp>

#include "data/formats/zip.hpp"

namespace weft {

/// Returns the entries with the names of their arrays. Throws corrupt for an entry that is no
/// array.
std::vector<ZipEntry> npz_arrays(std::vector<ZipEntry> entries);

/// Writes arrays uncompressed, with the sizes of zip64, as numpy.savez() does. Equal arrays give
/// equal bytes.
class NpzWriter {
 public:
  using Write = std::function<void(std::span<const std::byte> bytes)>;

  /// The writer passes the bytes of the file to `write`, in order.
  explicit NpzWriter(Write write) : write_(std::move(write)) {}

  /// Adds an array. `elements` are row-major. Throws invalid_argument for a name that is empty,
  /// repeated or too long for an entry; for a number of bytes that doesn't fit the type; and for
  /// bf16.
  void add(const std::string& name, const TensorType& type, std::span<const std::byte> elements);
  /// Writes the directory, which ends the file.
  void finish();

 private:
  void put(std::span<const std::byte> bytes);

  Write write_;
  std::vector<ZipEntry> entries_;  // `data_begin` is the offset of the local header
  std::uint64_t written_ = 0;
};

}  // namespace weft
