#pragma once
/// The file of torch.save() since PyTorch 1.6: a zip whose entries are stored as they are,
///
///   NAME/data.pkl    the pickle of what was saved, which refers to storages by their keys
///   NAME/data/KEY    the elements of a storage
///   NAME/byteorder   "little"
///
/// and others that don't matter here (a version, an id).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/formats/read_at.hpp"
#include "data/pytorch/pickle.hpp"

namespace weft {

/// A tensor of such a file.
struct TorchTensor {
  PickledTensor pickled{};
  std::uint64_t begin = 0;  ///< of its first element in the file, in bytes

  /// Whether its elements lie in the file in row-major order.
  bool is_row_major() const;
};

/// Whether a file that begins so is one that torch.save() wrote before PyTorch 1.6.
bool is_old_torch_file(std::span<const std::byte> head);

/// Throws corrupt and version as read_zip_directory() and read_torch_pickle() do; version also for
/// a program of TorchScript, for big-endian elements and for packed entries; corrupt for a zip
/// without data.pkl, and for a tensor whose storage isn't there or is shorter than the pickle says.
std::vector<TorchTensor> read_torch_file(std::uint64_t file_bytes, const ReadAt& read);

}  // namespace weft
