#pragma once
/// What a collective has to give, computed one element at a time from what all chips put in.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <weft/mesh.hpp>

#include "transport/collectives/collective_call.hpp"

namespace weft::testing {

/// A collective with every position's operand and result. The values are such that sums of them
/// round, so that their order shows.
struct CollectiveCase {
  CollectiveCall call;
  std::uint64_t seed = 0;
  std::vector<std::vector<std::byte>> operands;
  std::vector<std::vector<std::byte>> results;
};

/// Fills operands and results from call and seed.
void solve(CollectiveCase& which, const Mesh& mesh);

}  // namespace weft::testing
