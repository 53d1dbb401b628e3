#pragma once
/// ProgramList: writes the programs that a job's workers compile into the run folder, for `weft
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
  std::uint32_t number = 0;   ///< number among the worker's programs in the generation, from 0
  std::uint64_t step = 0;     ///< the first step that needed the program
  std::string fingerprint{};  ///< equal for equal programs
  std::string site{};         ///< source line of the call that the program is for
  std::string reason{};       ///< why earlier programs of this call can't be used; "": there are
                              ///< none
  double seconds = 0;         ///< time to compile it, or to load its plan
  bool stored = false;        ///< the plan was in WEFT_COMPILE_CACHE
  std::uint64_t arena_bytes = 0;  ///< the most memory that a chip of the job can need
  bool keeps_state = false;       ///< true if state is stored in two versions
};

/// The list of one worker. Entries that can't be written are skipped, because that mustn't end a
/// job.
class ProgramList {
 public:
  /// After kFilesMax programs add() writes only lines, and after kLinesMax programs nothing, so
  /// that a loop that compiles in every step can't fill the disk.
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
