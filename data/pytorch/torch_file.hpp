#pragma once
/// The file format of torch.save() since PyTorch 1.6: a zip with uncompressed entries,
///
///   NAME/data.pkl    the pickle of the saved value, which refers to storages by their keys
///   NAME/data/KEY    the elements of a storage
///   NAME/byteorder   "little"
///
/// and further entries that weft ignores (a version, an id).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/formats/read_at.hpp"
#include "data/pytorch/pickle.hpp"

namespace weft {

/// A tensor in a file of torch.save().
struct TorchTensor {
  PickledTensor pickled{};
  std::uint64_t begin = 0;  ///< offset of the first element in the file, in bytes

  /// Returns whether the tensor's elements are in row-major order in the file.
  bool is_row_major() const;
};

/// Returns whether a file with this beginning was written by torch.save() before PyTorch 1.6.
bool is_old_torch_file(std::span<const std::byte> head);

/// Returns the tensors of a file. Throws corrupt and version like read_zip_directory() and
/// read_torch_pickle(). Also throws version for a program of TorchScript, big-endian elements or
/// compressed entries, and corrupt if the zip has no data.pkl, or if a tensor's storage is missing
/// or shorter than the pickle says.
std::vector<TorchTensor> read_torch_file(std::uint64_t file_bytes, const ReadAt& read);

}  // namespace weft
