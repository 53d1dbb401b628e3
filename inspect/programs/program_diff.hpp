#pragma once
/// ProgramDiff: makes the data of `weft inspect diff`: the first difference between the programs of
/// two workers.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"
#include "transport/job/program_list.hpp"

namespace weft {

/// The first program that differs between two workers.
struct ProgramDiff {
  int first_worker = 0;
  int second_worker = 1;
  std::size_t common = 0;               ///< number of equal programs before the difference
  std::optional<ProgramEntry> first{};  ///< absent if first_worker has no further program
  std::optional<ProgramEntry> second{};
  std::vector<std::string> causes{};  ///< why the programs differ, the likeliest cause first
  std::vector<std::string> lines{};   ///< the first line that differs, from each listing

  bool same() const { return !first && !second; }
};

/// Compares the workers' programs of the job's last generation. Reads the listings from the run
/// folder. Throws not_found if a worker has no programs of that generation.
ProgramDiff diff_programs(const Snapshot& job, std::span<const ProgramEntry> entries,
                          int first_worker, int second_worker);

/// Returns two workers whose programs differ, or the first two if all workers have the same
/// programs. Throws not_found if there is only one worker.
std::pair<int, int> choose_workers(std::span<const ProgramEntry> entries);

std::string diff_text(const Snapshot& job, const ProgramDiff& diff);
std::string diff_json(const Snapshot& job, const ProgramDiff& diff);

}  // namespace weft
