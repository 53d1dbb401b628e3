/// Reads the header of an IDX file with these bytes.

#include "data/formats/idx.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace weft {
namespace {

void read_file(std::span<const std::byte> file) {
  const IdxHeader header = read_idx_header(file, file.size());
  WEFT_CHECK(header.data_begin <= file.size() && header.shape.size() >= 1);
  const auto data_bytes = static_cast<std::uint64_t>(header.shape.num_elements()) *
                          static_cast<std::uint64_t>(header.element.bytes);
  WEFT_CHECK(data_bytes == file.size() - header.data_begin);
  // Bytes behind the header don't change the result.
  const auto first = file.first(std::min<std::size_t>(file.size(), kIdxHeaderBytesMax));
  WEFT_CHECK(read_idx_header(first, file.size()) == header);
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::read_or_refuse(std::as_bytes(std::span(data, size)), weft::read_file);
  return 0;
}
