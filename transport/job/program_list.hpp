#pragma once
/// ProgramList: what the workers of a job have compiled, in its run folder, for `weft inspect`.
///
///   RUN/programs/list.jsonl             a line for each program of each worker, in order
///   RUN/programs/FINGERPRINT.txt        the program as it was traced
///   RUN/programs/FINGERPRINT.weftplan   its plan (plan_file.hpp)

#include <cstdint>
#include <string>
#include <vector>

#include "spmd/plan/plan.hpp"

namespace weft {

struct ProgramEntry {
  int worker = 0;
  std::uint64_t generation = 1;
  std::uint32_t number = 0;   ///< among the worker's programs of the generation, from 0
  std::uint64_t step = 0;     ///< in which it was needed first
  std::string fingerprint{};  ///< equal for equal programs
  std::string site{};         ///< the call that it runs for
  std::string reason{};  ///< why an earlier program of this call doesn't do; empty: there is none
  double seconds = 0;    ///< to compile it, or to load its plan
  bool stored = false;   ///< the plan was in WEFT_COMPILE_CACHE
  std::uint64_t arena_bytes = 0;  ///< the most that the job's chips may take, each
  bool keeps_state = false;       ///< in two versions
};

/// Of one worker. What can't be written is left out: a job doesn't end for that.
class ProgramList {
 public:
  /// Beyond the first kFilesMax programs there are lines only, beyond kLinesMax not even these: a
  /// program that compiles in every step fills no disk.
  static constexpr std::uint32_t kFilesMax = 64;
  static constexpr std::uint32_t kLinesMax = 4096;

  /// "" writes nothing.
  explicit ProgramList(const std::string& run_dir);

  void add(const ProgramEntry& entry, const std::string& text, const Plan& plan) const noexcept;

 private:
  void write(const ProgramEntry& entry, const std::string& text, const Plan& plan) const;

  std::string folder_;
};

/// Empty where there is none. Lines that aren't whole, and those that no worker writes, are left
/// out. Throws io.
std::vector<ProgramEntry> read_program_list(const std::string& run_dir);

/// Of an entry's program: where its text and its plan lie.
std::string program_text_path(const std::string& run_dir, const ProgramEntry& entry);
std::string program_plan_path(const std::string& run_dir, const ProgramEntry& entry);

}  // namespace weft
