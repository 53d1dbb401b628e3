#pragma once
/// The pickle in a file of torch.save(), as far as tensors need it. Nothing that a pickle names is
/// imported or called: weft knows the few functions that rebuild tensors and plain containers, and
/// refuses a file that names any other.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// The maxima of a pickle: its bytes, and what it may make of them.
inline constexpr std::uint64_t kPickleBytesMax = std::uint64_t{64} << 20;
inline constexpr std::size_t kPickleValuesMax = std::size_t{1} << 22;
/// Containers within containers, and tensors that a file has.
inline constexpr int kPickleDepthMax = 64;
inline constexpr std::size_t kPickleTensorsMax = std::size_t{1} << 20;

/// A tensor as the pickle describes it.
struct PickledTensor {
  std::string name{};   ///< keys and indices on the way to it, with dots: "model.fc1.weight"
  std::string dtype{};  ///< as safetensors has it: "F32"
  int element_bytes = 0;
  std::vector<std::int64_t> sizes{};
  std::vector<std::int64_t> strides{};  ///< in elements, 0 or more
  std::uint64_t offset = 0;             ///< of the first element in the storage, in elements
  std::string storage{};                ///< the key of its storage
  std::uint64_t storage_bytes = 0;

  /// Of all elements; the maximum of the type where it has no room for them.
  std::uint64_t bytes() const;
  friend bool operator==(const PickledTensor&, const PickledTensor&) = default;
};

/// All tensors of the value that the pickle holds, in order. A value that is a tensor itself has
/// the name "tensor". Throws version for a function, a class or an opcode, which it names, beyond
/// those that tensors, dicts, lists, tuples, sets, numbers and texts need; corrupt unless
///   - the pickle ends with its value, within the maxima above;
///   - each tensor has as many strides as sizes, none of them below 0, and lies in its storage;
///   - names are there once.
std::vector<PickledTensor> read_torch_pickle(std::span<const std::byte> pickle);

}  // namespace weft
