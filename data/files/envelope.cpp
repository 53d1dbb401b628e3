#include "data/files/envelope.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

// The hash is inlined, so that users of the library need no libxxhash.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

static_assert(std::endian::native == std::endian::little, "formats are little-endian");

struct Prefix {
  char magic[8];
  std::uint32_t version;
  std::uint32_t body_bytes;
  std::uint64_t body_xxh3;
};
static_assert(sizeof(Prefix) == kEnvelopePrefixBytes);

/// The maximum size of a FlatBuffer in bytes.
constexpr std::uint32_t kBodyBytesMax = std::numeric_limits<std::int32_t>::max();

}  // namespace

std::uint64_t xxh3(std::span<const std::byte> bytes) noexcept {
  return XXH3_64bits(bytes.data(), bytes.size());
}

struct Xxh3::State {
  XXH3_state_t hash;
};

Xxh3::Xxh3() : state_(new State) { XXH3_64bits_reset(&state_->hash); }
Xxh3::~Xxh3() { delete state_; }
void Xxh3::add(std::span<const std::byte> bytes) noexcept {
  XXH3_64bits_update(&state_->hash, bytes.data(), bytes.size());
}
std::uint64_t Xxh3::sum() const noexcept { return XXH3_64bits_digest(&state_->hash); }

void seal_envelope(const Format& format, std::span<std::byte> envelope) {
  WEFT_CHECK(format.magic.size() == sizeof(Prefix::magic), format.magic);
  WEFT_CHECK(envelope.size() >= sizeof(Prefix), envelope.size());
  const auto body = envelope.subspan(sizeof(Prefix));
  WEFT_CHECK(body.size() <= kBodyBytesMax, body.size());
  Prefix prefix{.magic = {},
                .version = format.version,
                .body_bytes = static_cast<std::uint32_t>(body.size()),
                .body_xxh3 = xxh3(body)};
  std::memcpy(prefix.magic, format.magic.data(), sizeof prefix.magic);
  std::memcpy(envelope.data(), &prefix, sizeof prefix);
}

std::vector<std::byte> make_envelope(const Format& format, std::span<const std::byte> body) {
  std::vector<std::byte> envelope(sizeof(Prefix) + body.size());
  std::ranges::copy(body, envelope.begin() + sizeof(Prefix));
  seal_envelope(format, envelope);
  return envelope;
}

std::size_t said_body_bytes(std::span<const std::byte> bytes) noexcept {
  Prefix prefix;
  if (bytes.size() < sizeof prefix) return 0;
  std::memcpy(&prefix, bytes.data(), sizeof prefix);
  return prefix.body_bytes;
}

std::span<const std::byte> open_envelope(const Format& format, std::span<const std::byte> bytes) {
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(Prefix) != 0) {
    fail(Errc::invalid_argument, "{}: begins at {}, which isn't a multiple of {}", format.name,
         static_cast<const void*>(bytes.data()), alignof(Prefix));
  }
  Prefix prefix;
  if (bytes.size() < sizeof prefix) {
    fail(Errc::corrupt, "{}: has {} bytes, fewer than the {} bytes of its header", format.name,
         bytes.size(), sizeof prefix);
  }
  std::memcpy(&prefix, bytes.data(), sizeof prefix);
  if (std::string_view(prefix.magic, sizeof prefix.magic) != format.magic) {
    fail(Errc::corrupt, "{}: doesn't begin with \"{}\"", format.name, format.magic);
  }
  if (prefix.version != format.version) {
    const bool is_older = prefix.version < format.version;
    fail(Errc::version, "{}: has version {}, of {} weft; this weft reads version {}: {}",
         format.name, prefix.version, is_older ? "an older" : "a newer", format.version,
         is_older ? "write it again with this weft" : "read it with the newer weft");
  }
  if (prefix.body_bytes > std::min<std::size_t>(bytes.size() - sizeof prefix, kBodyBytesMax)) {
    fail(Errc::corrupt, "{}: the body should have {} bytes, but only {} are present", format.name,
         prefix.body_bytes, bytes.size() - sizeof prefix);
  }
  const auto body = bytes.subspan(sizeof prefix, prefix.body_bytes);
  if (const std::uint64_t sum = xxh3(body); sum != prefix.body_xxh3) {
    fail(Errc::corrupt, "{}: the body's checksum is {:016x}, not {:016x} as written", format.name,
         sum, prefix.body_xxh3);
  }
  return body;
}

std::span<const std::byte> open_file(const Format& format, std::span<const std::byte> bytes) {
  const auto body = open_envelope(format, bytes);
  if (const std::size_t end = sizeof(Prefix) + body.size(); end != bytes.size()) {
    fail(Errc::corrupt, "{}: {} bytes after its end", format.name, bytes.size() - end);
  }
  return body;
}

}  // namespace weft
