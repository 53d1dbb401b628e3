#include <weft/bench/collectives/implementations.hpp>

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include <weft/spmd/error.hpp>
#include <weft/transport/job_memory.hpp>

namespace weft::bench {
namespace {

const std::vector<Op> kCollectives = {Op::barrier,    Op::all_reduce, Op::reduce_scatter,
                                      Op::all_gather, Op::all_to_all, Op::broadcast};

/// Beside this program.
std::string program(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

/// Room for a source and a destination.
std::size_t arena_capacity(std::size_t bytes_max) {
  const std::size_t bytes = 2 * (bytes_max + 4 * kArenaTempOffset);
  return (bytes + kArenaCapacityUnit - 1) / kArenaCapacityUnit * kArenaCapacityUnit;
}

}  // namespace

Launch weft_launch(std::size_t bytes_max) {
  return {.name = "weft",
          .command = {program("bench_rank_weft")},
          .arena_capacity = arena_capacity(bytes_max),
          .ops = kCollectives};
}

Launch limit_launch(std::size_t bytes_max) {
  return {.name = "limit",
          .command = {program("bench_rank_limit")},
          .arena_capacity = arena_capacity(bytes_max),
          .ops = kCollectives};
}

std::vector<std::string> peer_names() { return {}; }

std::vector<Launch> peer_launches(std::span<const std::string> names, int) {
  const std::vector<std::string> known = peer_names();
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) == known.end()) {
      fail(Errc::invalid_argument, "peer '{}': expected some of {}", name, fmt::join(known, ", "));
    }
  }
  return {};
}

}  // namespace weft::bench
