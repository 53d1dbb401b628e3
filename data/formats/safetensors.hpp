#pragma once
/// safetensors: the file format for tensors that PyTorch's users know. Little-endian:
///
///   file   = n:u64 header[n] data
///   header = {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
///             "__metadata__": {"KEY": "VALUE", ...}}
///
/// The header is JSON and may end with spaces. Offsets count from the beginning of the data; the
/// tensors, row-major, cover the data without gap or overlap.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weft/tensor/type.hpp>

namespace weft {

/// The maximum of n, the size of the header in bytes.
inline constexpr std::uint64_t kSafetensorsJsonBytesMax = 100'000'000;
/// The maximum number of dims of a tensor that is read.
inline constexpr std::size_t kSafetensorsDimsMax = 64;
/// In a file that weft writes, the data begins at a multiple of this number of bytes.
inline constexpr std::uint64_t kSafetensorsAlignment = 4096;

struct SafetensorsEntry {
  std::string name{};
  std::string dtype{};  ///< the name of the dtype in the file, such as "F32"
  std::vector<std::int64_t> sizes{};
  std::uint64_t begin = 0;  ///< offset from the file's beginning, in bytes
  std::uint64_t end = 0;

  friend bool operator==(const SafetensorsEntry&, const SafetensorsEntry&) = default;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors{};  ///< in order of `begin`
  std::map<std::string, std::string> metadata{};
  std::uint64_t data_begin = 0;  ///< offset from the file's beginning, in bytes

  friend bool operator==(const SafetensorsHeader&, const SafetensorsHeader&) = default;
};

/// Returns the DType for a name such as "F32", or nothing for a dtype that weft doesn't have.
std::optional<DType> dtype_of(std::string_view safetensors_dtype);

/// Returns the number of bytes before the data: 8 + n. `first8` has the first 8 bytes of a file
/// whose size is `file_bytes`, or all bytes if the file is shorter. Throws corrupt unless n is at
/// most kSafetensorsJsonBytesMax and the header is within the file.
std::uint64_t safetensors_header_bytes(std::span<const std::byte> first8, std::uint64_t file_bytes);

/// Reads the header of a file whose size is `file_bytes`. `header` has the first
/// safetensors_header_bytes() bytes of the file. The result includes tensors that weft can't read,
/// because their dtype is unknown or they have more dims than a Shape. Throws invalid_argument if
/// `header` has a different number of bytes; corrupt unless
///   - the header is an object of the form above, without keys that are unknown or repeated;
///   - names and dtypes aren't empty, and a tensor has at most kSafetensorsDimsMax dims;
///   - each tensor of a known dtype has as many bytes as its sizes require;
///   - the tensors cover the data.
SafetensorsHeader read_safetensors_header(std::span<const std::byte> header,
                                          std::uint64_t file_bytes);

struct NamedType {
  std::string name{};
  TensorType type{};

  friend bool operator==(const NamedType&, const NamedType&) = default;
};

/// The layout of a file that is to be written.
struct SafetensorsLayout {
  std::vector<std::byte> header{};      ///< all bytes before the data
  std::vector<std::uint64_t> begins{};  ///< each tensor's offset in the file, in the caller's order
  std::uint64_t file_bytes = 0;
};

/// Places the tensors by descending size of their elements, then by name, so that each tensor is
/// aligned to its elements. Throws invalid_argument if a name is empty, repeated, "__metadata__" or
/// not UTF-8, if metadata isn't UTF-8, or if the header or the file becomes too large.
SafetensorsLayout write_safetensors_header(const std::vector<NamedType>& tensors,
                                           const std::map<std::string, std::string>& metadata);

/// Reads the index of a model that is stored in several files. The index is a JSON file beside
/// them:
///
///   {"metadata": {"KEY": VALUE, ...}, "weight_map": {"TENSOR": "FILE", ...}}
///
/// Returns the file of each tensor, a plain name in the index's own folder. `metadata` may be
/// absent; its values (strings, numbers and so on) are dropped. `json` is the whole file. Throws
/// corrupt for another form, a repeated key, an empty tensor name, and a file name that isn't
/// plain.
std::map<std::string, std::string> read_safetensors_index(std::span<const std::byte> json);

}  // namespace weft
