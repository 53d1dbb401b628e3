#pragma once
/// `weft inspect diff`: where the programs of two workers of a job differ.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"
#include "transport/job/program_list.hpp"

namespace weft {

/// The first program that two workers have not in common.
struct ProgramDiff {
  int first_worker = 0;
  int second_worker = 1;
  std::size_t common = 0;               ///< programs before it, which are the same
  std::optional<ProgramEntry> first{};  ///< absent: that worker has no further program
  std::optional<ProgramEntry> second{};
  std::vector<std::string> causes{};  ///< what differs, the likeliest first
  std::vector<std::string> lines{};   ///< the first line that differs, of both listings

  bool same() const { return !first && !second; }
};

/// Of the workers' last common generation. Reads the listings from the run folder. Throws not_found
/// where a worker has no programs.
ProgramDiff diff_programs(const Snapshot& job, std::span<const ProgramEntry> entries,
                          int first_worker, int second_worker);

/// Two workers whose programs differ; the first two where all have the same. Throws not_found where
/// there is only one.
std::pair<int, int> choose_workers(std::span<const ProgramEntry> entries);

std::string diff_text(const Snapshot& job, const ProgramDiff& diff);
std::string diff_json(const Snapshot& job, const ProgramDiff& diff);

}  // namespace weft
