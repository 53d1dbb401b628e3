#include "data/formats/idx.hpp"

#include <algorithm>
#include <array>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr std::size_t kDimsOffset = 4;

struct ElementType {
  std::uint8_t code;
  ForeignElement element;
};
constexpr std::array<ElementType, 6> kElementTypes{{{0x08, {'u', 1, false}},
                                                    {0x09, {'i', 1, false}},
                                                    {0x0B, {'i', 2, true}},
                                                    {0x0C, {'i', 4, true}},
                                                    {0x0D, {'f', 4, true}},
                                                    {0x0E, {'f', 8, true}}}};

std::int64_t read_dim(std::span<const std::byte> bytes) {
  std::int64_t dim = 0;
  for (const std::byte byte : bytes) dim = dim << 8 | std::to_integer<std::int64_t>(byte);
  return dim;
}

const ForeignElement& check_magic(std::span<const std::byte> bytes) {
  if (bytes.size() < kDimsOffset) {
    fail(Errc::corrupt, "IDX: has {} bytes; the header has at least {}", bytes.size(), kDimsOffset);
  }
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  if (at(0) == 0x1f && at(1) == 0x8b) {
    fail(Errc::corrupt, "IDX: is compressed by gzip; decompress it: gunzip FILE");
  }
  const auto* found = std::ranges::find(kElementTypes, at(2), &ElementType::code);
  if (at(0) != 0 || at(1) != 0 || found == kElementTypes.end()) {
    fail(Errc::corrupt,
         "IDX: begins with {:02x} {:02x} {:02x}; expected 00 00 and the type of elements: 08, 09, "
         "0b, 0c, 0d or 0e",
         at(0), at(1), at(2));
  }
  return found->element;
}

}  // namespace

IdxHeader read_idx_header(std::span<const std::byte> bytes, std::uint64_t file_bytes) {
  IdxHeader header{.element = check_magic(bytes)};
  const auto dim_count = std::to_integer<std::size_t>(bytes[3]);
  if (dim_count < 1 || dim_count > kDimCountMax) {
    fail(Errc::corrupt, "IDX: has {} dims; expected 1 to {}", dim_count, kDimCountMax);
  }
  header.data_begin = kDimsOffset + 4 * dim_count;
  if (bytes.size() < header.data_begin) {
    fail(Errc::corrupt, "IDX: ends after {} bytes, within its header of {}; was the file cut off?",
         bytes.size(), header.data_begin);
  }
  std::array<std::int64_t, kDimCountMax> dims{};
  for (std::size_t i = 0; i < dim_count; ++i) {
    dims[i] = read_dim(bytes.subspan(kDimsOffset + 4 * i, 4));
  }
  try {
    header.shape = Shape(std::span(dims).first(dim_count));
  } catch (const Error& error) {
    fail(Errc::corrupt, "IDX: {}", error.what());
  }
  // The product can't overflow, because a Shape has at most 2^53 elements.
  const auto data_bytes =
      static_cast<std::uint64_t>(header.shape.num_elements() * header.element.bytes);
  if (file_bytes - header.data_begin != data_bytes) {
    fail(Errc::corrupt, "IDX: has {} bytes of data; shape ({}) needs {}; was the file {}?",
         file_bytes - header.data_begin, fmt::join(header.shape.begin(), header.shape.end(), ", "),
         data_bytes, file_bytes - header.data_begin < data_bytes ? "cut off" : "appended to");
  }
  return header;
}

}  // namespace weft
