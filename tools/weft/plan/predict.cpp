#include "tools/weft/plan/predict.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <vector>

#include "spmd/plan/step_cost.hpp"

namespace weft {
namespace {

/// The time in which a cache line moves from one core to another and back, measured on the machines
/// of bench/results.
constexpr double kRoundSeconds = 2e-7;
constexpr std::size_t kCopyBytes = std::size_t{32} << 20;

}  // namespace

HostSpeed measure_host(int cores) {
  using Clock = std::chrono::steady_clock;
  std::vector<char> from(kCopyBytes, 1);
  std::vector<char> to(kCopyBytes, 2);
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const auto begin = Clock::now();
    std::memcpy(to.data(), from.data(), kCopyBytes);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
    from[static_cast<std::size_t>(i)] = to[static_cast<std::size_t>(i) + 1];
  }
  return {.copy_bytes_per_second = static_cast<double>(kCopyBytes) / std::max(best, 1e-9),
          .cores = std::max(cores, 1)};
}

double predicted_seconds(const CollectiveSummary& collective, int group, int chips,
                         const HostSpeed& speed) {
  if (group < 2) return 0;
  const double rounds = std::bit_width(static_cast<unsigned>(group - 1));
  const double copy =
      traffic_bytes(collective.kind, collective.bytes, group) / speed.copy_bytes_per_second;
  const double turns = std::max(1.0, static_cast<double>(chips) / speed.cores);
  return (rounds * kRoundSeconds + copy) * turns;
}

}  // namespace weft
