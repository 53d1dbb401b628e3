/// Reads the headers of a tar archive with these bytes.

#include "data/formats/tar.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace weft {
namespace {

void read_file(std::span<const std::byte> file) {
  const ReadAt read = [file](std::uint64_t offset, std::span<std::byte> out) {
    WEFT_CHECK(offset <= file.size() && out.size() <= file.size() - offset, offset, out.size());
    std::ranges::copy(file.subspan(offset, out.size()), out.begin());
  };
  std::uint64_t end = 0;
  scan_tar(file.size(), read, [&](const TarEntry& entry) {
    // Entries follow each other, with headers between them.
    WEFT_CHECK(entry.data_begin >= end + 512 && entry.data_begin <= file.size());
    WEFT_CHECK(entry.bytes <= file.size() - entry.data_begin, entry.bytes);
    WEFT_CHECK(entry.name.size() <= kTarNameBytesMax && !entry.name.ends_with('/'));
    end = entry.data_begin + entry.bytes;
  });
}

/// Reads the input again with valid checksums, which no mutation would find.
void read_sealed(std::span<const std::uint8_t> data) {
  constexpr std::size_t kBlockBytes = 512;
  constexpr std::size_t kChecksumBegin = 148;
  std::vector<std::byte> file(data.size());
  std::ranges::copy(std::as_bytes(data), file.begin());
  for (std::size_t at = 0; at + kBlockBytes <= file.size(); at += kBlockBytes) {
    const auto block = std::span(file).subspan(at, kBlockBytes);
    if (std::memcmp(block.data() + 257, "ustar", 5) != 0) continue;
    std::ranges::fill(block.subspan(kChecksumBegin, 8), std::byte{' '});
    unsigned sum = 0;
    for (const std::byte byte : block) sum += std::to_integer<unsigned>(byte);
    const std::string digits = fmt::format("{:06o}", sum);
    std::memcpy(block.data() + kChecksumBegin, digits.data(), digits.size());
  }
  read_or_refuse(file, read_file);
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::read_or_refuse(std::as_bytes(std::span(data, size)), weft::read_file);
  weft::read_sealed(std::span(data, size));
  return 0;
}
