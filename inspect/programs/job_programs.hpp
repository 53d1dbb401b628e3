#pragma once
/// JobPrograms: makes the data of `weft inspect programs`: the programs that a job's workers have
/// compiled, and why.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"
#include "transport/job/program_list.hpp"

namespace weft {

/// A program that one or several workers compiled under the same number in the same generation.
struct JobProgram {
  ProgramEntry entry{};        ///< entry of the first worker, but `seconds` of the slowest
  std::vector<int> workers{};  ///< sorted
};

/// Returns the programs, sorted by generation, number and fingerprint.
std::vector<JobProgram> programs_of(std::span<const ProgramEntry> entries);

std::string programs_text(const Snapshot& job, std::span<const JobProgram> programs);
std::string programs_json(const Snapshot& job, std::span<const JobProgram> programs);

/// Throws not_found with the message that none of the job's `programs` is the requested one.
[[noreturn]] void fail_without_program(const Snapshot& job, std::span<const JobProgram> programs,
                                       std::optional<std::uint32_t> number);

/// Reads the plan of a program. Throws not_found if the plan wasn't kept; io, version or corrupt.
Plan read_plan(const Snapshot& job, const JobProgram& program);

}  // namespace weft
