#pragma once
/// Returns the seeds with which a property is tested.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace weft::testing {

/// Returns `count` seeds, multiplied by WEFT_TEST_TIMES (0.25 under sanitizers), or only the seed
/// WEFT_TEST_SEED if that is set.
inline std::vector<std::uint64_t> seeds(std::uint64_t count) {
  if (const char* seed = std::getenv("WEFT_TEST_SEED")) return {std::stoull(seed)};
  const char* times = std::getenv("WEFT_TEST_TIMES");
  const double factor = times != nullptr ? std::stod(times) : 1;
  std::vector<std::uint64_t> seeds(static_cast<std::size_t>(static_cast<double>(count) * factor));
  for (std::uint64_t seed = 0; seed < seeds.size(); ++seed) seeds[seed] = seed;
  return seeds;
}

}  // namespace weft::testing
