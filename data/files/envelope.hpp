#pragma once
/// Envelope: the prefix of every frame and file of weft. Little-endian:
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
  std::string_view name;   ///< for errors: "shard frame"
  std::string_view magic;  ///< 8 characters
  std::uint32_t version = 0;
};

inline constexpr std::size_t kEnvelopePrefixBytes = 24;

/// XXH3, 64 bits, seed 0.
std::uint64_t xxh3(std::span<const std::byte> bytes) noexcept;
/// The same of bytes that come in pieces.
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

/// Writes the prefix of an envelope whose body already stands at envelope[kEnvelopePrefixBytes] and
/// fills the rest.
void seal_envelope(const Format& format, std::span<std::byte> envelope);
/// Returns a whole envelope around the body.
std::vector<std::byte> make_envelope(const Format& format, std::span<const std::byte> body);

/// The body's length according to the envelope at the beginning of `bytes`, unchecked; 0 if `bytes`
/// is too short to have it.
std::size_t said_body_bytes(std::span<const std::byte> bytes) noexcept;
/// The body of the envelope at the beginning of `bytes`, which is 8-byte aligned; more bytes may
/// follow. Throws version for another version of the format, corrupt for anything that isn't an
/// intact envelope.
std::span<const std::byte> open_envelope(const Format& format, std::span<const std::byte> bytes);
/// The same, but nothing may follow.
std::span<const std::byte> open_file(const Format& format, std::span<const std::byte> bytes);

}  // namespace weft
