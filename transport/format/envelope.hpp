#pragma once
/// Envelope: what every frame and file of weft begins with. Little-endian:
///
///   envelope = magic[8] version:u32 body_bytes:u32 body_xxh3:u64 body[body_bytes]
///
/// The body is a FlatBuffer. No byte of an envelope can change unnoticed.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace weft {

struct Format {
  std::string_view name;   ///< for errors: "shard frame"
  std::string_view magic;  ///< 8 characters
  std::uint32_t version = 0;
};

inline constexpr std::size_t kEnvelopePrefixBytes = 24;

/// XXH3, 64 bits, seed 0.
std::uint64_t xxh3(std::span<const std::byte> bytes) noexcept;

/// Writes the prefix of an envelope whose body already stands at envelope[kEnvelopePrefixBytes] and
/// reaches to the end.
void seal_envelope(const Format& format, std::span<std::byte> envelope);
/// A whole envelope around the body.
std::vector<std::byte> make_envelope(const Format& format, std::span<const std::byte> body);

/// How long the envelope that `bytes` begins with says its body is, unchecked; 0 where `bytes` is
/// too short to say so.
std::size_t said_body_bytes(std::span<const std::byte> bytes) noexcept;
/// The body of the envelope that `bytes`, 8-byte aligned, begins with; more may follow it. Throws
/// version for another version of the format, corrupt for anything that isn't an intact envelope.
std::span<const std::byte> open_envelope(const Format& format, std::span<const std::byte> bytes);
/// The same where nothing may follow.
std::span<const std::byte> open_file(const Format& format, std::span<const std::byte> bytes);

}  // namespace weft
