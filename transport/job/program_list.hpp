#pragma once
/// ProgramList: the programs that the workers of a job have compiled, in its run folder, for `weft
/// inspect`.
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
  std::uint32_t number = 0;   ///< among the worker's programs in the generation, from 0
  std::uint64_t step = 0;     ///< the step that needed it first
  std::string fingerprint{};  ///< equal for equal programs
  std::string site{};         ///< the call that it runs for
  std::string reason{};  ///< why an earlier program of this call can't be used; empty: there is
                         ///< none
  double seconds = 0;    ///< time to compile it, or to load its plan
  bool stored = false;   ///< the plan was in WEFT_COMPILE_CACHE
  std::uint64_t arena_bytes = 0;  ///< the most memory that a chip of the job may take
  bool keeps_state = false;       ///< state is kept in two versions
};

/// The list of one worker. Entries that can't be written are left out, because a job must not end
/// for that.
class ProgramList {
 public:
  /// After kFilesMax programs only lines are written, and after kLinesMax not even lines, so that a
  /// program that compiles in every step can't fill the disk.
  static constexpr std::uint32_t kFilesMax = 64;
  static constexpr std::uint32_t kLinesMax = 4096;

  /// With "", nothing is written.
  explicit ProgramList(const std::string& run_dir);

  void add(const ProgramEntry& entry, const std::string& text, const Plan& plan) const noexcept;

 private:
  void write(const ProgramEntry& entry, const std::string& text, const Plan& plan) const;

  std::string folder_;
};

/// Reads the list; empty if there is none. Skips incomplete lines and lines that no worker can have
/// written. Throws io.
std::vector<ProgramEntry> read_program_list(const std::string& run_dir);

/// The paths of an entry's program text and plan.
std::string program_text_path(const std::string& run_dir, const ProgramEntry& entry);
std::string program_plan_path(const std::string& run_dir, const ProgramEntry& entry);

}  // namespace weft
