#pragma once
/// TensorTable: reads and writes tables of named tensors, with types and offsets, in shared memory.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weft/tensor/type.hpp>

#include "transport/memory/segment.hpp"
#include "transport/published/published_format.hpp"

namespace weft {

struct PublishedTensor {
  std::string name{};
  TensorType type{};
  std::size_t offset = 0;  ///< in bytes, from the beginning of the version or row

  friend bool operator==(const PublishedTensor&, const PublishedTensor&) = default;
};

/// Returns the tensors with offsets set: in order, each a multiple of `alignment`.
std::vector<PublishedTensor> lay_out(std::vector<PublishedTensor> tensors,
                                     std::size_t alignment = kPublishedAlignment);

/// Throws invalid_argument unless the name has 1 to 63 letters, digits, '_', '-' and '.', and
/// begins with a letter or digit. `what` is the option's name in the error.
void require_published_name(std::string_view name, std::string_view what);

/// Returns how many bytes all names have together.
std::size_t name_bytes_of(std::span<const PublishedTensor> tensors);
/// Writes a TensorEntry for each tensor, and then the names.
void write_tensor_table(std::byte* at, std::span<const PublishedTensor> tensors);

struct TensorTableSize {
  std::size_t count = 0;
  std::size_t name_bytes = 0;
  std::size_t bytes = 0;  ///< the size of the version or row that contains the tensors
  std::size_t alignment = 1;
};
/// Returns the tensors of a table. The caller has checked that the segment has as many entries and
/// bytes of names as `size` says. Throws corrupt for an invalid entry.
std::vector<PublishedTensor> read_tensor_table(const Segment& segment, std::size_t offset,
                                               const TensorTableSize& size);

}  // namespace weft
