#pragma once
/// Reads and writes npz, the zip files in which NumPy stores arrays. The array NAME is stored as
/// the entry NAME.npy.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <weft/tensor/type.hpp>

#include "data/formats/zip.hpp"

namespace weft {

/// Returns the entries, named after their arrays. Throws corrupt if an entry isn't an array.
std::vector<ZipEntry> npz_arrays(std::vector<ZipEntry> entries);

/// Writes arrays uncompressed, with the sizes of zip64, like numpy.savez(). Equal arrays give equal
/// bytes.
class NpzWriter {
 public:
  using Write = std::function<void(std::span<const std::byte> bytes)>;

  /// The writer passes the bytes of the file to `write`, piece by piece in their order.
  explicit NpzWriter(Write write) : write_(std::move(write)) {}

  /// Adds an array. `elements` are row-major. Throws invalid_argument if the name is empty,
  /// repeated or too long for an entry, if the number of bytes doesn't fit the type, or if the
  /// dtype is bf16.
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
