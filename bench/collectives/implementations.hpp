#pragma once
/// What bench_collectives can measure, and how each is started at its best.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "bench/collectives/team.hpp"

namespace weft::bench {

/// Arenas hold a source and a destination of `bytes_max` each.
Launch weft_launch(std::size_t bytes_max);
/// The best that the machine allows.
Launch limit_launch(std::size_t bytes_max);

/// Names that peer_launches() knows.
std::vector<std::string> peer_names();
/// Peers of these names, "ompi-tuned" and "mpich-tuned" in each setting that is best somewhere.
/// Those that weren't built are named on stderr and left out. Throws invalid_argument for an
/// unknown name.
std::vector<Launch> peer_launches(std::span<const std::string> names, int ranks);

}  // namespace weft::bench
