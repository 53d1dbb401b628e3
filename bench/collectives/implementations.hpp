#pragma once
/// Lists the implementations that bench_collectives can measure, and says how to start each in its
/// best settings.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "bench/collectives/team.hpp"

namespace weft::bench {

/// Returns how to launch weft. Arenas have room for a source and a destination of `bytes_max` each.
Launch weft_launch(std::size_t bytes_max);
/// Returns how to launch the ranks of limit_rank.cpp, which show the best times that the machine
/// allows.
Launch limit_launch(std::size_t bytes_max);

/// Returns the names that peer_launches() accepts.
std::vector<std::string> peer_names();
/// Returns launches of the named peers; "ompi-tuned" and "mpich-tuned" have one for each setting
/// that is the best for some op. Peers that weren't built are reported on stderr and omitted.
/// Throws invalid_argument for an unknown name.
std::vector<Launch> peer_launches(std::span<const std::string> names, int ranks);

}  // namespace weft::bench
