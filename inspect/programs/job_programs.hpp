#pragma once
/// `weft inspect programs`: what the workers of a job have compiled, and why.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"
#include "transport/job/program_list.hpp"

namespace weft {

/// A program that workers have compiled as the same number of the same generation.
struct JobProgram {
  ProgramEntry entry{};        ///< of the first of these workers; `seconds`: the longest of all
  std::vector<int> workers{};  ///< sorted
};

/// By generation, number and fingerprint.
std::vector<JobProgram> programs_of(std::span<const ProgramEntry> entries);

std::string programs_text(const Snapshot& job, std::span<const JobProgram> programs);
std::string programs_json(const Snapshot& job, std::span<const JobProgram> programs);

/// Throws not_found: none of `programs`, which are all of the job, is what was asked for.
[[noreturn]] void fail_without_program(const Snapshot& job, std::span<const JobProgram> programs,
                                       std::optional<std::uint32_t> number);

/// The plan of a program. Throws not_found where it wasn't kept, io, version or corrupt.
Plan read_plan(const Snapshot& job, const JobProgram& program);

}  // namespace weft
