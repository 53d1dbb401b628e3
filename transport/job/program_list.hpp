#pragma once
/// ProgramList: writes the programs that a job's workers compile into the run folder, for `weft
/// inspect`.

#include <cstdint>
#include <string>
#include <vector>

#include "spmd/plan/plan.hpp"

namespace weft {

struct ProgramEntry {
  int worker = 0;
  std::uint64_t generation = 1;
  std::uint32_t number = 0;       ///< number among the worker's programs in the generation, from 0
  std::uint64_t step = 0;         ///< the first step that needed the program
  std::string fingerprint{};      ///< equal for equal programs
  std::string site{};             ///< the source line of the call that needs the program
  std::string reason{};           ///< why earlier programs of this call don't fit; "": none exist
  double seconds = 0;             ///< time to compile it, or to load its plan
  bool stored = false;            ///< whether the plan came from WEFT_COMPILE_CACHE
  std::uint64_t arena_bytes = 0;  ///< the most memory that one chip of the job can need
  bool keeps_state = false;       ///< whether state is stored in two versions
};

/// The list of one worker's programs. Entries that can't be written are skipped, because that must
/// not end a job.
class ProgramList {
 public:
  /// After kFilesMax programs, add() writes only lines of the list, and after kLinesMax programs
  /// nothing. So a loop that compiles in every step can't fill the disk.
  static constexpr std::uint32_t kFilesMax = 64;
  static constexpr std::uint32_t kLinesMax = 4096;

  /// Makes the list in the run folder. If `run_dir` is "", add() writes nothing.
  explicit ProgramList(const std::string& run_dir);

  void add(const ProgramEntry& entry, const std::string& text, const Plan& plan) const noexcept;

 private:
  void write(const ProgramEntry& entry, const std::string& text, const Plan& plan) const;

  std::string folder_;
};

/// Reads the list. Returns no entries if there is no list. Skips incomplete lines, and lines that
/// no worker can have written. Throws io.
std::vector<ProgramEntry> read_program_list(const std::string& run_dir);

/// Return the paths of an entry's program text and plan.
std::string program_text_path(const std::string& run_dir, const ProgramEntry& entry);
std::string program_plan_path(const std::string& run_dir, const ProgramEntry& entry);

}  // namespace weft
