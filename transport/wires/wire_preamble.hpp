#pragma once
/// WirePreamble: the first message in each direction of a wire. By it, each end checks that the
/// other end is the one that it expects.
///
///   preamble = "weftwire" version:u32 channel:u32 generation:u64 from to job:char[64]
///   from, to = host:u32 worker:u32 chip:u32
///
/// Numbers are little-endian. Zeros follow a job id that is shorter than its field.

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

/// Throws invalid_argument if the config's job id can't be in a preamble.
void require_usable(const WireConfig& config);

/// Returns the preamble that the end `config.self` sends to `peer`.
WirePreamble preamble_to(const WireConfig& config, const WireEnd& peer);

WirePreambleBytes encode(const WirePreamble& preamble);
/// Returns the preamble. Throws corrupt if the bytes aren't a preamble, and version if the preamble
/// has another version.
WirePreamble decode_preamble(std::span<const std::byte, kWirePreambleBytes> bytes);

/// Throws invalid_argument, naming the first field that differs, if the received preamble isn't the
/// expected one.
void require_same(const WirePreamble& received, const WirePreamble& expected);

}  // namespace weft
