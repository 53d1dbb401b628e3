/// Reads the directory of an .npz file with these bytes, and the header of each array.

#include "data/formats/npy.hpp"
#include "data/formats/npz.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace weft {
namespace {

void read_file(std::span<const std::byte> file) {
  const ReadAt read = [file](std::uint64_t offset, std::span<std::byte> out) {
    WEFT_CHECK(offset <= file.size() && out.size() <= file.size() - offset, offset, out.size());
    std::ranges::copy(file.subspan(offset, out.size()), out.begin());
  };
  std::uint64_t packed_bytes = 0;
  for (const ZipEntry& entry : read_zip_directory(file.size(), read)) {
    packed_bytes += entry.packed_bytes;
    WEFT_CHECK(packed_bytes <= file.size());
    read_or_refuse(file, [&](std::span<const std::byte>) {
      const std::vector<std::byte> bytes = read_zip_entry(entry, read);
      WEFT_CHECK(bytes.size() == entry.bytes);
      const NpyHeader header = read_npy_header(bytes, bytes.size());
      WEFT_CHECK(header.data_begin <= bytes.size());
    });
  }
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::read_or_refuse(std::as_bytes(std::span(data, size)), weft::read_file);
  return 0;
}
