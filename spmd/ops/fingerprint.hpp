#pragma once
/// Fingerprint: a digest that identifies a program.

#include <compare>
#include <cstdint>
#include <string>

#include "spmd/program/program.hpp"

namespace weft {

/// A 128-bit digest of a program without its locations, but with the names of inputs and outputs.
/// Equal programs have equal fingerprints.
struct Fingerprint {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::string to_string() const;  ///< 32 hex digits
  friend auto operator<=>(const Fingerprint&, const Fingerprint&) = default;
};
Fingerprint fingerprint(const Program& program);

}  // namespace weft
