#pragma once
/// Reads the pickle in a file of torch.save(), as far as this is needed to find tensors. Nothing
/// that a pickle names is imported or called: weft implements the few functions that rebuild
/// tensors and plain containers, and refuses a file that names any other function.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// The maximum size of a pickle, and the maximum number of values that it may make.
inline constexpr std::uint64_t kPickleBytesMax = std::uint64_t{64} << 20;
inline constexpr std::size_t kPickleValuesMax = std::size_t{1} << 22;
/// The maximum depth of nested containers, and the maximum number of tensors in a file.
inline constexpr int kPickleDepthMax = 64;
inline constexpr std::size_t kPickleTensorsMax = std::size_t{1} << 20;

/// A tensor as the pickle describes it.
struct PickledTensor {
  std::string name{};   ///< path of keys and indices, such as "model.fc1.weight"
  std::string dtype{};  ///< safetensors' name for the dtype, such as "F32"
  int element_bytes = 0;
  std::vector<std::int64_t> sizes{};
  std::vector<std::int64_t> strides{};  ///< strides in elements, 0 or more
  std::uint64_t offset = 0;             ///< offset of the first element in the storage, in elements
  std::string storage{};                ///< the key of the tensor's storage
  std::uint64_t storage_bytes = 0;

  /// Returns the size of all elements in bytes, at most the largest std::uint64_t.
  std::uint64_t bytes() const;
  friend bool operator==(const PickledTensor&, const PickledTensor&) = default;
};

/// Returns all tensors of the value that the pickle holds, in order. A value that is a tensor
/// itself has the name "tensor". Tensors, dicts, lists, tuples, sets, numbers and texts can be
/// read. Throws version, with the name, for any function, class or opcode that these don't need;
/// corrupt unless
///   - the pickle ends with its value, within the maxima above;
///   - each tensor has as many strides as sizes, all at least 0, and is within its storage;
///   - names are unique.
std::vector<PickledTensor> read_torch_pickle(std::span<const std::byte> pickle);

}  // namespace weft
