#pragma once
/// RUN/rescued.json, in the run folder of a job whose trainer was killed: what became of its state.
///
///   {"step": 640, "path": "/data/gpt/step-640", "continued_by": "93ef..."}

#include <cstdint>
#include <optional>
#include <string>

namespace weft {

struct RescueNote {
  std::uint64_t step = 0;
  std::string path{};          ///< of the checkpoint that `weft rescue`, or `weft launch`, has made
  std::string continued_by{};  ///< the last job that began with it; empty: none so far
};

std::string rescue_note_in(const std::string& run_dir);

/// Throws nothing: a note that can't be written is missed by `weft inspect why` only.
void write_rescue_note(const std::string& file, const RescueNote& note) noexcept;
/// Absent where there is none, or one that can't be read.
std::optional<RescueNote> read_rescue_note(const std::string& file) noexcept;

}  // namespace weft
