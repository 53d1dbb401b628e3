#pragma once
/// IDX: the file format of MNIST (Y. LeCun, C. Cortes, C. Burges). Big-endian:
///
///   file = 0:u16 type:u8 dim_count:u8 dims:u32[dim_count] data
///   type = 0x08 u8, 0x09 i8, 0x0B i16, 0x0C i32, 0x0D f32, 0x0E f64

#include <cstddef>
#include <cstdint>
#include <span>

#include <weft/tensor/type.hpp>

#include "data/formats/foreign_element.hpp"

namespace weft {

/// The maximum number of bytes before the data.
inline constexpr std::uint64_t kIdxHeaderBytesMax = 4 + 4 * kDimCountMax;

struct IdxHeader {
  ForeignElement element{};
  Shape shape{};
  std::uint64_t data_begin = 0;  ///< offset from the file's beginning, in bytes

  friend bool operator==(const IdxHeader&, const IdxHeader&) = default;
};

/// Reads the header of a file whose size is `file_bytes`. `bytes` has at least the first
/// kIdxHeaderBytesMax bytes of the file, or all bytes if the file is shorter. Throws corrupt if the
/// header has another form, the array has no dims or a shape that Shape can't represent, or the
/// file has more or fewer bytes than header and data.
IdxHeader read_idx_header(std::span<const std::byte> bytes, std::uint64_t file_bytes);

}  // namespace weft
