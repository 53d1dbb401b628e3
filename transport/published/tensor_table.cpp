#include "transport/published/tensor_table.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr std::size_t kPublishedNameMax = 63;

/// Reads one tensor from a copy of its entry. `names` has the names of this tensor and the later
/// ones. Returns false if the entry is invalid.
bool read_entry(const TensorEntry& entry, std::string_view& names, const TensorTableSize& size,
                PublishedTensor& tensor) {
  if (entry.name_bytes > names.size() || entry.rank > kDimCountMax || entry.dtype >= kDTypeCount) {
    return false;
  }
  tensor.name = names.substr(0, entry.name_bytes);
  names.remove_prefix(entry.name_bytes);
  tensor.type.dtype = static_cast<DType>(entry.dtype);
  auto bytes = static_cast<std::uint64_t>(byte_size(tensor.type.dtype));
  for (int dim = 0; dim < entry.rank; ++dim) {
    if (entry.dims[dim] < 0 || __builtin_mul_overflow(bytes, entry.dims[dim], &bytes)) return false;
  }
  try {
    tensor.type.shape = Shape(std::span(entry.dims, entry.rank));
  } catch (const Error&) {
    return false;  // since a shape has at most 2^53 elements
  }
  tensor.offset = entry.offset;
  return entry.offset % size.alignment == 0 && entry.offset <= size.bytes &&
         bytes <= size.bytes - entry.offset;
}

}  // namespace

std::vector<PublishedTensor> lay_out(std::vector<PublishedTensor> tensors, std::size_t alignment) {
  std::size_t offset = 0;
  for (PublishedTensor& tensor : tensors) {
    tensor.offset = offset;
    offset += static_cast<std::size_t>(tensor.type.bytes()) + alignment - 1;
    offset = offset / alignment * alignment;
  }
  return tensors;
}

std::size_t name_bytes_of(std::span<const PublishedTensor> tensors) {
  std::size_t bytes = 0;
  for (const PublishedTensor& tensor : tensors) bytes += tensor.name.size();
  return bytes;
}

void write_tensor_table(std::byte* at, std::span<const PublishedTensor> tensors) {
  std::byte* names = at + tensors.size() * sizeof(TensorEntry);
  for (const PublishedTensor& tensor : tensors) {
    TensorEntry entry{.offset = tensor.offset,
                      .dims = {},
                      .name_bytes = static_cast<std::uint32_t>(tensor.name.size()),
                      .dtype = static_cast<std::uint8_t>(tensor.type.dtype),
                      .rank = static_cast<std::uint8_t>(tensor.type.shape.size()),
                      .reserved = 0};
    std::ranges::copy(tensor.type.shape, entry.dims);
    std::memcpy(at, &entry, sizeof(entry));
    std::memcpy(names, tensor.name.data(), tensor.name.size());
    at += sizeof(entry);
    names += tensor.name.size();
  }
}

std::vector<PublishedTensor> read_tensor_table(const Segment& segment, std::size_t offset,
                                               const TensorTableSize& size) {
  const std::byte* at = segment.data() + offset;
  const std::string copied(reinterpret_cast<const char*>(at + size.count * sizeof(TensorEntry)),
                           size.name_bytes);
  std::string_view names = copied;
  std::vector<PublishedTensor> tensors(size.count);
  for (PublishedTensor& tensor : tensors) {
    TensorEntry entry;
    std::memcpy(&entry, at, sizeof(entry));
    at += sizeof(entry);
    if (!read_entry(entry, names, size, tensor)) {
      fail(Errc::corrupt, "segment {}: tensor {} of {} has an entry that can't be", segment.name(),
           &tensor - tensors.data(), tensors.size());
    }
  }
  return tensors;
}

void require_published_name(std::string_view name, std::string_view what) {
  const auto is_plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  const bool is_good = !name.empty() && name.size() <= kPublishedNameMax && is_plain(name[0]) &&
                       std::ranges::all_of(name, [&](char c) {
                         return is_plain(c) || c == '_' || c == '-' || c == '.';
                       });
  if (is_good) return;
  fail(Errc::invalid_argument,
       "{}: name = \"{}\": expected 1 to {} letters, digits, '_', '-' and '.', the first of them a "
       "letter or digit, because the name becomes a part of a file's name",
       what, name, kPublishedNameMax);
}

}  // namespace weft
