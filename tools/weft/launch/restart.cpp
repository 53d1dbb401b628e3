#include "tools/weft/launch/restart.hpp"

#include <chrono>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "actors/data/late_reports.hpp"
#include "data/files/utf8.hpp"
#include "transport/board/board.hpp"
#include "transport/job/remains.hpp"
#include "transport/resume/rescue.hpp"
#include "transport/resume/rescue_note.hpp"
#include "transport/storage/checkpoint_folder.hpp"

namespace weft {
namespace {

/// The longest wait for the end of the workers, which end as soon as their trainer has died.
constexpr std::chrono::seconds kWorkersEnd{10};

std::optional<std::string> job_of(pid_t trainer) {
  for (const std::string& job : Board::jobs()) {
    try {
      if (Board::open(job, true).header().trainer_pid == trainer) return job;
    } catch (const Error&) {
      // The board can't be read now, because its job is just beginning or ending.
    }
  }
  return {};
}

/// Returns whether the program died of a fault or of the OOM killer, rather than by request.
bool was_lost(const siginfo_t& ended) {
  if (ended.si_code == CLD_EXITED) return false;
  return ended.si_status != SIGINT && ended.si_status != SIGTERM && ended.si_status != SIGHUP &&
         ended.si_status != SIGQUIT;
}

/// Removes the memory of a dead trainer's job, unless it must be kept for a rescue. The files that
/// explain the job's end stay in its run folder.
void bury_job_of(pid_t trainer) {
  const std::optional<std::string> job = job_of(trainer);
  if (!job) return;
  const auto remains = wait_until_dead(*job, kWorkersEnd);
  if (remains && remains->life == JobLife::dead) (void)remove_remains(*remains);
}

/// Writes the reports that the trainer had not yet written. If that fails, prints the reason.
void keep_reports(const JobRemains& remains, std::uint64_t step) {
  try {
    for (const std::string& root : remains.roots) add_late_reports_of(remains.job, root, step);
  } catch (const std::exception& e) {
    fmt::print(stderr, "weft launch: the last reports of job {} aren't in its progress.csv: {}\n",
               remains.job, visible(e.what()));
  }
}

/// Writes a note of the rescue into the run folder. Returns the note's path; "" if the job's board
/// can't be read.
std::string note_rescue(const std::string& job, const CheckpointEntry& saved) {
  try {
    const std::string note = rescue_note_in(Board::open(job, true).header().run_dir);
    write_rescue_note(note, {.step = saved.step, .path = saved.path});
    return note;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::optional<GoOn> save_job_of(pid_t trainer) {
  const std::optional<std::string> job = job_of(trainer);
  if (!job) return {};
  const auto remains = wait_until_dead(*job, kWorkersEnd);
  if (!remains) return {};
  GoOn go_on;
  try {
    const DeadJob dead = find_dead_job(*job);
    go_on.fit_number = dead.card.fit_number;
    go_on.checkpoints = dead.card.checkpoints;
    const auto saved = list_checkpoints(go_on.checkpoints);
    const bool is_saved = !saved.empty() && saved.back().step >= dead.step;
    if (dead.has_steps() && !is_saved) (void)rescue(dead, "");
  } catch (const Error& e) {
    fmt::print(stderr, "weft launch: the last step of job {} isn't saved: {}\n", *job,
               visible(e.what()));
  }
  const auto saved = list_checkpoints(go_on.checkpoints);
  if (!saved.empty()) {
    go_on.step = saved.back().step;
    go_on.note = note_rescue(*job, saved.back());
  }
  keep_reports(*remains, saved.empty() ? std::numeric_limits<std::uint64_t>::max() : go_on.step);
  (void)remove_remains(*remains, true);
  return saved.empty() ? std::nullopt : std::optional(go_on);
}

std::optional<GoOn> Restarts::after(pid_t pid, const siginfo_t& ended) {
  if (!was_lost(ended)) return {};
  if (max_ == 0) {
    bury_job_of(pid);
    return {};
  }
  const std::optional<GoOn> saved = save_job_of(pid);
  const bool has_new = saved && (!from_ || saved->step > from_->step);
  without_a_step_ = has_new ? 0 : without_a_step_ + 1;
  if (has_new) from_ = saved;
  const std::string kept =
      from_ ? fmt::format("step {} is saved in {}", from_->step, visible(from_->checkpoints))
            : "none of its steps was kept";
  if (count_ == max_) {
    fmt::print(stderr,
               "weft launch: the program was killed by SIG{}, and isn't started again after "
               "--max-failures {}; {}\n",
               ::sigabbrev_np(ended.si_status), max_, kept);
    return {};
  }
  if (without_a_step_ == kWithoutAStepMax) {
    fmt::print(stderr,
               "weft launch: the program was killed {} times at step {}: it isn't started again; "
               "{}\n",
               kWithoutAStepMax, from_ ? from_->step : 0, kept);
    return {};
  }
  ++count_;
  return from_.value_or(GoOn{});
}

}  // namespace weft
