/// Reads the fuzz input in three ways: as a whole file, as an index, and as the number of data
/// bytes (two bytes) followed by the JSON of the header, because no mutation would find a length
/// that fits.

#include <optional>
#include <string>

#include "data/formats/safetensors.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace weft {
namespace {

std::optional<Shape> shape_of(const SafetensorsEntry& entry) {
  try {
    return Shape(std::span(entry.sizes));
  } catch (const Error&) {
    return {};
  }
}

/// Checks that a header with weft's dtypes and shapes reads the same after it is written again.
void check_rewritten(const SafetensorsHeader& header) {
  std::vector<NamedType> tensors;
  for (const SafetensorsEntry& entry : header.tensors) {
    const auto dtype = dtype_of(entry.dtype);
    const auto shape = shape_of(entry);
    if (!dtype || !shape) return;
    tensors.push_back({entry.name, {*dtype, *shape}});
  }
  const SafetensorsLayout layout = write_safetensors_header(tensors, header.metadata);
  const SafetensorsHeader again = read_safetensors_header(layout.header, layout.file_bytes);
  WEFT_CHECK(again.metadata == header.metadata);
  WEFT_CHECK(again.data_begin == layout.header.size());
  WEFT_CHECK(again.tensors.size() == tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, type] = tensors[i];
    const auto entry = std::ranges::find(again.tensors, name, &SafetensorsEntry::name);
    WEFT_CHECK(entry != again.tensors.end() && entry->begin == layout.begins[i], name);
    WEFT_CHECK(dtype_of(entry->dtype) == type.dtype && shape_of(*entry) == type.shape, name);
    WEFT_CHECK(entry->begin % static_cast<std::uint64_t>(byte_size(type.dtype)) == 0, name);
  }
}

void check(const SafetensorsHeader& header, std::uint64_t file_bytes) {
  std::uint64_t covered = header.data_begin;
  for (const SafetensorsEntry& entry : header.tensors) {
    WEFT_CHECK(!entry.name.empty());
    WEFT_CHECK(entry.begin == covered && entry.end >= covered, entry.begin, covered, entry.end);
    covered = entry.end;
  }
  WEFT_CHECK(covered == file_bytes, covered, file_bytes);
  check_rewritten(header);
}

void read_file(std::span<const std::byte> file) {
  const auto first8 = file.first(std::min<std::size_t>(file.size(), 8));
  const std::uint64_t header_bytes = safetensors_header_bytes(first8, file.size());
  check(read_safetensors_header(file.first(header_bytes), file.size()), file.size());
}

void read_header(std::span<const std::byte> bytes) {
  std::uint16_t data_bytes = 0;
  if (bytes.size() < sizeof data_bytes) return;
  std::memcpy(&data_bytes, bytes.data(), sizeof data_bytes);
  const auto json = bytes.subspan(sizeof data_bytes);
  const std::uint64_t json_bytes = json.size();
  std::vector<std::byte> header(sizeof json_bytes + json.size());
  std::memcpy(header.data(), &json_bytes, sizeof json_bytes);
  std::ranges::copy(json, header.begin() + sizeof json_bytes);
  const std::uint64_t file_bytes = header.size() + data_bytes;
  check(read_safetensors_header(header, file_bytes), file_bytes);
}

void read_index(std::span<const std::byte> json) {
  for (const auto& [tensor, file] : read_safetensors_index(json)) {
    WEFT_CHECK(!tensor.empty() && !file.empty() && file != "." && file != "..", tensor, file);
    WEFT_CHECK(file.find('/') == std::string::npos, file);
  }
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  weft::read_or_refuse(bytes, weft::read_file);
  weft::read_or_refuse(bytes, weft::read_header);
  weft::read_or_refuse(bytes, weft::read_index);
  return 0;
}
