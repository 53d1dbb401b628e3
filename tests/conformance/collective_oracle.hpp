#pragma once
/// The oracle computes the right result of a collective, one element at a time, from the operands
/// of all chips.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "transport/collectives/collective_call.hpp"

namespace weft::testing {

/// A collective with the operand and the result of every position. Sums of the operands' values are
/// rounded, so that a wrong order of summation gives other bits.
struct CollectiveCase {
  CollectiveCall call;
  std::uint64_t seed = 0;
  std::vector<std::vector<std::byte>> operands;
  std::vector<std::vector<std::byte>> results;
};

/// Fills operands and results according to call and seed.
void solve(CollectiveCase& which, const Mesh& mesh);

}  // namespace weft::testing
