#pragma once
/// Helpers that all fuzz targets use.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <weft/tensor/error.hpp>

#include "data/files/envelope.hpp"
#include "tests/support/aligned_copy.hpp"

namespace weft {

/// Runs the reader. Ends the process unless the reader accepts the bytes or refuses them as
/// invalid.
template <typename Read>
void read_or_refuse(std::span<const std::byte> bytes, Read read) {
  try {
    read(bytes);
  } catch (const Error& error) {
    WEFT_CHECK(error.code() == Errc::corrupt || error.code() == Errc::version, error.what());
  }
}

/// Opens and reads shared memory that is planted under a name. Ends the process unless the reader
/// accepts the bytes, or refuses them as invalid, or as not there: memory whose first word is 0 is
/// still being made.
template <typename Read>
void read_or_refuse_segment(Read read) {
  try {
    read();
  } catch (const Error& error) {
    const Errc code = error.code();
    WEFT_CHECK(code == Errc::corrupt || code == Errc::version || code == Errc::not_found,
               error.what());
  }
}

/// Gives the bytes to the reader unchanged, and then with a valid checksum, which no mutation would
/// find, so that the data behind the checksum is read as well.
template <typename Read>
void fuzz_reader(const Format& format, std::span<const std::uint8_t> data, Read read) {
  const testing::AlignedCopy copy(std::as_bytes(data));
  const std::span<std::byte> bytes = copy.bytes();
  read_or_refuse(bytes, read);

  if (bytes.size() < kEnvelopePrefixBytes) return;
  constexpr std::size_t kBodyBytesOffset = 12;
  std::uint32_t body_bytes = 0;
  std::memcpy(&body_bytes, bytes.data() + kBodyBytesOffset, sizeof body_bytes);
  seal_envelope(format, bytes.first(std::min(bytes.size(), kEnvelopePrefixBytes + body_bytes)));
  read_or_refuse(bytes, read);
}

}  // namespace weft
