#pragma once
/// WirePreamble: the first message in each direction of a wire, by which both ends check that they
/// mean each other.
///
///   preamble = "weftwire" version:u32 channel:u32 generation:u64 from to job:char[64]
///   from, to = host:u32 worker:u32 chip:u32
///
/// Numbers are little-endian. A shorter job id is filled with zeros.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "transport/wires/wires.hpp"

namespace weft {

inline constexpr std::size_t kWirePreambleBytes = 8 + 4 + 4 + 8 + 2 * 12 + kWireJobBytes;
using WirePreambleBytes = std::array<std::byte, kWirePreambleBytes>;

struct WirePreamble {
  std::string job;
  std::uint64_t generation = 0;
  std::uint32_t channel = 0;
  WireEnd from{};
  WireEnd to{};
  friend bool operator==(const WirePreamble&, const WirePreamble&) = default;
};

/// Throws invalid_argument if the config's job id doesn't fit a preamble.
void require_usable(const WireConfig& config);

/// Returns the preamble that the end `self` of the config sends to `peer`.
WirePreamble preamble_to(const WireConfig& config, const WireEnd& peer);

WirePreambleBytes encode(const WirePreamble& preamble);
/// Throws corrupt if the bytes aren't a preamble, and version if it has another version.
WirePreamble decode_preamble(std::span<const std::byte, kWirePreambleBytes> bytes);

/// Throws invalid_argument, naming the first field that differs, unless a peer's preamble is the
/// expected one.
void require_same(const WirePreamble& received, const WirePreamble& expected);

}  // namespace weft
