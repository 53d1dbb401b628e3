#include "actors/host/left_for_rescue.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <weft/tensor/error.hpp>

#include "actors/launch/launch_variables.hpp"
#include "actors/process/log.hpp"
#include "transport/format/run_card.hpp"
#include "transport/resume/rescue_note.hpp"
#include "transport/state/commits.hpp"
#include "transport/storage/checkpoint_folder.hpp"

namespace weft {

namespace {

void note_continuation(const std::string& job, const std::vector<ResumePoint>& resumes,
                       int fit_number) {
  std::string file = note_of_launcher(fit_number);
  if (file.empty() && !resumes.empty() && !resumes.front().rescued_from.empty()) {
    file = rescue_note_in(resumes.front().rescued_from);
  }
  if (file.empty()) return;
  if (auto note = read_rescue_note(file)) {
    note->continued_by = job;
    write_rescue_note(file, *note);
  }
}

}  // namespace

void write_run_card(const JobPlace& place, const JobSpec& spec, const Assignment& assignment,
                    const std::vector<ResumePoint>& resumes, int fit_number) {
  note_continuation(place.id(), resumes, fit_number);
  if (!spec.is_rescuable()) return;
  const std::vector<std::byte> bytes =
      encode_run_card({.mesh = *spec.mesh,
                       .num_workers = spec.num_joins(),
                       .seed = assignment.seed,
                       .begin_step = resumes.empty() ? 0 : resumes.front().step,
                       .checkpoints = assignment.checkpoint.path,
                       .keep_for_rescue_s = std::max(spec.keep_for_rescue_s, launcher_keeps_s()),
                       .fit_number = fit_number});
  const std::string path = place.run_card_path();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) fail(Errc::io, "can't write the run card {}", path);
}

namespace {

/// Returns the step of the newest checkpoint; 0 if there is none, or if the folder can't be read.
std::uint64_t last_saved(const std::string& folder) {
  try {
    const auto saved = list_checkpoints(folder);
    return saved.empty() ? 0 : saved.back().step;
  } catch (const Error& e) {
    logger("weft.trainer")->warn("can't look for checkpoints: {}", e.what());
    return 0;
  }
}

}  // namespace

void leave_for_rescue(JobPlace& place, const JobSpec& spec, const Assignment& assignment,
                      const JobMemory& memory) {
  if (!spec.is_rescuable() || spec.keep_for_rescue_s == 0) return;
  const std::string& folder = assignment.checkpoint.path;
  const std::uint64_t step = common_step(memory);
  if (step <= last_saved(folder)) return;
  place.leave();
  logger("weft.trainer")
      ->warn("the state of step {} stays in memory for {} s: `weft rescue {}` saves it to {}", step,
             spec.keep_for_rescue_s, place.id(), folder);
}

}  // namespace weft
