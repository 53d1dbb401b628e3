#pragma once
/// Damages the bytes of a format in every small way, and checks what the reader does.

#include <cstddef>
#include <span>
#include <string_view>

#include <gtest/gtest.h>

#include <weft/tensor/error.hpp>

#include "data/files/envelope.hpp"
#include "tests/support/aligned_copy.hpp"
#include "tests/support/expect_error.hpp"

namespace weft {

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Expects that the reader refuses the bytes if any number of bytes is missing at the end.
template <typename Read>
void expect_truncations_refused(std::span<const std::byte> bytes, Read read) {
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    SCOPED_TRACE(size);
    const testing::AlignedCopy copy(bytes.first(size));
    testing::expect_error(Errc::corrupt, {}, [&] { read(copy.bytes()); });
  }
}

/// Expects that the reader refuses the bytes with any one bit flipped.
template <typename Read>
void expect_bit_flips_refused(std::span<const std::byte> bytes, Read read) {
  const testing::AlignedCopy copy(bytes);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    SCOPED_TRACE(bit);
    std::byte& damaged = copy.bytes()[bit / 8];
    damaged ^= std::byte{1} << (bit % 8);
    EXPECT_THROW(read(copy.bytes()), Error);
    damaged ^= std::byte{1} << (bit % 8);
  }
}

/// Flips each bit of the envelope's body and makes the checksum valid again, so that only the
/// reader's own checks can find the damage. The reader either refuses the bytes as corrupt, or its
/// result is passed to `accepted`. Returns how often the reader refused.
template <typename Read, typename Accepted>
int flip_behind_the_seal(const Format& format, std::span<const std::byte> bytes, Read read,
                         Accepted accepted) {
  const testing::AlignedCopy copy(bytes);
  const auto body = open_envelope(format, bytes);
  const auto envelope = copy.bytes().first(kEnvelopePrefixBytes + body.size());
  int refused = 0;
  for (std::size_t bit = 8 * kEnvelopePrefixBytes; bit < 8 * envelope.size(); ++bit) {
    SCOPED_TRACE(bit);
    std::byte& damaged = envelope[bit / 8];
    damaged ^= std::byte{1} << (bit % 8);
    seal_envelope(format, envelope);
    try {
      accepted(read(copy.bytes()));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::corrupt) << error.what();
      ++refused;
    }
    damaged ^= std::byte{1} << (bit % 8);
  }
  return refused;
}

}  // namespace weft
