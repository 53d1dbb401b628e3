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

void write_card(const HostRun& host, const RunCard& card) {
  const std::vector<std::byte> bytes = encode_run_card(card);
  const std::string path = host.place.run_card_path();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) fail(Errc::io, "can't write the run card {}", path);
}

RunCard card_of(const HostRun& host, const Assignment& assignment, std::uint64_t begin_step,
                bool has_copies) {
  const JobSpec& spec = host.spec;
  return {.mesh = *spec.mesh,
          .num_workers = spec.num_joins(),
          .seed = assignment.seed,
          .begin_step = begin_step,
          .checkpoints = assignment.checkpoint.path,
          .keep_for_rescue_s = std::max(spec.keep_for_rescue_s, launcher_keeps_s()),
          .job = spec.place.count > 1 ? host.place.job().id : "",
          .host = spec.place.index,
          .num_hosts = spec.place.count,
          .has_copies = has_copies};
}

}  // namespace

void write_run_card(const HostRun& host, const Assignment& assignment,
                    const std::vector<ResumePoint>& resumes, int fit_number, bool has_copies) {
  note_continuation(host.place.id(), resumes, fit_number);
  if (!host.spec.is_rescuable()) return;
  RunCard card = card_of(host, assignment, resumes.empty() ? 0 : resumes.front().step, has_copies);
  card.fit_number = fit_number;
  write_card(host, card);
}

void write_run_card_of_host(const HostRun& host, const Assignment& assignment,
                            std::uint64_t begin_step, bool has_copies) {
  if (!host.spec.is_rescuable()) return;
  write_card(host, card_of(host, assignment, begin_step, has_copies));
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

void leave_for_rescue(HostRun& host, const std::string& folder, bool is_trainer_dead) {
  const JobSpec& spec = host.spec;
  if (!spec.is_rescuable() || (spec.keep_for_rescue_s == 0 && !is_trainer_dead)) return;
  const std::uint64_t step = common_step(host.memory);
  if (step <= last_saved(folder)) return;
  host.place.leave();
  logger("weft.trainer")
      ->warn("the state of step {} stays in memory {}: `weft rescue {}` saves it to {}", step,
             spec.keep_for_rescue_s > 0 ? fmt::format("for {} s", spec.keep_for_rescue_s)
                                        : std::string("until your next job on this machine"),
             host.place.job().id, folder);
}

}  // namespace weft
