#pragma once
/// Envelope: the form of all frames and files of weft, with little-endian numbers:
///
///   envelope = magic[8] version:u32 body_bytes:u32 body_xxh3:u64 body[body_bytes]
///
/// The body is a FlatBuffer. A reader detects any changed byte of an envelope.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace weft {

struct Format {
  std::string_view name;   ///< such as "shard frame", for messages
  std::string_view magic;  ///< 8 characters
  std::uint32_t version = 0;
};

inline constexpr std::size_t kEnvelopePrefixBytes = 24;

/// Returns the 64-bit XXH3 hash with seed 0.
std::uint64_t xxh3(std::span<const std::byte> bytes) noexcept;
/// Computes the same hash as xxh3() does, for bytes that arrive in pieces.
class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();
  Xxh3(const Xxh3&) = delete;
  Xxh3& operator=(const Xxh3&) = delete;
  void add(std::span<const std::byte> bytes) noexcept;
  std::uint64_t sum() const noexcept;

 private:
  struct State;
  State* state_;
};

/// Writes the prefix of an envelope. The body must already be at envelope[kEnvelopePrefixBytes] and
/// extend to the end of `envelope`.
void seal_envelope(const Format& format, std::span<std::byte> envelope);
/// Returns a complete envelope around the body.
std::vector<std::byte> make_envelope(const Format& format, std::span<const std::byte> body);

/// Returns the body's length that the envelope at the beginning of `bytes` states, without checking
/// it. Returns 0 if `bytes` is too short to contain the length.
std::size_t said_body_bytes(std::span<const std::byte> bytes) noexcept;
/// Returns the body of the envelope at the beginning of `bytes`, which must be 8-byte aligned;
/// other bytes may follow the envelope. Throws version for another version of the format, and
/// corrupt if the envelope isn't intact.
std::span<const std::byte> open_envelope(const Format& format, std::span<const std::byte> bytes);
/// Acts like open_envelope(), but throws corrupt if bytes follow the envelope.
std::span<const std::byte> open_file(const Format& format, std::span<const std::byte> bytes);

}  // namespace weft
