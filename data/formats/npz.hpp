#pragma once
/// npz: arrays of NumPy in a zip file, the array NAME as the entry NAME.npy.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <weft/type.hpp>

#include "data/formats/zip.hpp"

namespace weft {

/// The entries of a directory, with the names of their arrays in place of their own. Throws corrupt
/// for an entry that is no array.
std::vector<ZipEntry> npz_arrays(std::vector<ZipEntry> entries);

/// Writes arrays, stored, with the sizes of zip64, as numpy.savez() does. The same arrays make the
/// same bytes.
class NpzWriter {
 public:
  using Write = std::function<void(std::span<const std::byte> bytes)>;

  /// `write` is called with the bytes of the file, from its beginning on.
  explicit NpzWriter(Write write) : write_(std::move(write)) {}

  /// `elements` are row-major. Throws invalid_argument for a name that is empty, there twice or
  /// longer than an entry's may be, for another number of bytes than the type's, and for bf16.
  void add(const std::string& name, const TensorType& type, std::span<const std::byte> elements);
  /// Writes the directory, behind which there is nothing.
  void finish();

 private:
  void put(std::span<const std::byte> bytes);

  Write write_;
  std::vector<ZipEntry> entries_;  // `data_begin` is where the local header is
  std::uint64_t written_ = 0;
};

}  // namespace weft
