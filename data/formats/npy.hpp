#pragma once
/// npy: the file format of NumPy for one array.
///
///   file   = "\x93NUMPY" major:u8 minor:u8 n:(u16 if major is 1, else u32) header[n] data
///   header = {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
///
/// n is little-endian. The header is a Python literal of ASCII text; version 3.0 may have UTF-8 in
/// names of fields, which weft doesn't read. `descr` consists of the byte order ('<' little, '>'
/// big, '|' none), an element's kind, and its number of bytes.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <weft/tensor/type.hpp>

namespace weft {

/// The maximum number of bytes before the data.
inline constexpr std::uint64_t kNpyHeaderBytesMax = std::uint64_t{64} << 10;

struct NpyHeader {
  std::string descr{};
  bool fortran_order = false;  ///< the first index varies fastest
  bool big_endian = false;
  std::optional<DType> dtype{};  ///< empty if weft lacks the dtype (i2, u2, u8)
  std::int64_t element_bytes = 0;
  Shape shape{};
  std::uint64_t data_begin = 0;  ///< offset from the file's beginning, in bytes

  friend bool operator==(const NpyHeader&, const NpyHeader&) = default;
};

/// Reads the header of a file whose size is `file_bytes`. `bytes` has at least the first
/// kNpyHeaderBytesMax bytes of the file, or all bytes if the file is shorter. Throws version for a
/// version other than 1.0, 2.0 and 3.0; corrupt for
///   - a header that is too large, or isn't a dict of exactly the keys above;
///   - a type other than b1, i1, u1, i2, u2, f2, i4, u4, f4, i8, u8 and f8, such as objects, and
///     a shape that Shape can't represent;
///   - a file that has more or fewer bytes than header and data;
/// and invalid_argument if `bytes` ends within the header of a longer file.
NpyHeader read_npy_header(std::span<const std::byte> bytes, std::uint64_t file_bytes);

/// Returns all bytes before the data of a row-major, little-endian file of version 1.0. The number
/// of bytes is a multiple of 64. Throws invalid_argument for bf16, which NumPy doesn't have.
std::vector<std::byte> write_npy_header(const TensorType& type);

/// Converts data in the form that the header describes to row-major, little-endian elements. Throws
/// invalid_argument if the data has another size.
std::vector<std::byte> to_row_major(const NpyHeader& header, std::span<const std::byte> data);

}  // namespace weft
