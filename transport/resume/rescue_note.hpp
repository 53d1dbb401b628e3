#pragma once
/// RescueNote: RUN/rescued.json in the run folder of a job whose trainer was killed. It says what
/// happened to the job's state.
///
///   {"step": 640, "path": "/data/gpt/step-640", "continued_by": "93ef..."}

#include <cstdint>
#include <optional>
#include <string>

namespace weft {

struct RescueNote {
  std::uint64_t step = 0;
  std::string path{};          ///< path of the checkpoint that `weft rescue` or `weft launch` has
                               ///< made
  std::string continued_by{};  ///< the last job that began with the checkpoint; "" if there is none
};

std::string rescue_note_in(const std::string& run_dir);

/// Writes a note. Ignores errors, because only `weft inspect why` needs the note.
void write_rescue_note(const std::string& file, const RescueNote& note) noexcept;
/// Reads a note. Returns nothing if there is no note or it can't be read.
std::optional<RescueNote> read_rescue_note(const std::string& file) noexcept;

}  // namespace weft
