#include "actors/host/hang_reporter.hpp"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "actors/process/log.hpp"
#include "inspect/snapshot/kept_hang.hpp"
#include "inspect/snapshot/snapshot_reader.hpp"
#include "inspect/why/explain.hpp"
#include "inspect/why/hang.hpp"

namespace weft {
namespace {

/// A job without progress is examined twice: this many seconds before the patience ends, and when
/// the patience has ended.
constexpr double kFirstLookBeforeS = 1.5;
constexpr std::size_t kLinesMax = 16;
/// If a job has made progress in this many seconds before it ends, keep_last_sight() saves nothing.
constexpr double kStillS = 2;

std::string first_lines(const std::string& text) {
  std::size_t end = 0;
  for (std::size_t line = 0; line < kLinesMax && end < text.size(); ++line) {
    end = std::min(text.find('\n', end), text.size() - 1) + 1;
  }
  return text.substr(0, end);
}

}  // namespace

HangReporter::HangReporter(const Board& board, std::optional<double> patience_s)
    : board_(board), patience_s_(patience_s) {}

std::optional<HangReport> HangReporter::look() {
  if (patience_s_ == 0.0) return {};
  const Snapshot rows{.at_ns = boottime_ns(), .rows = board_.readable_rows()};
  const double idle = idle_s(rows);
  if (told_ && idle >= *told_) {
    told_ = idle;
    return {};
  }
  if (told_) moves_again();
  const double patience = patience_s_.value_or(
      std::max({least_patience_s_, steps_patience_s_, ::weft::patience_s(rows)}));
  try {
    if (idle < patience - kFirstLookBeforeS) {
      before_.reset();
    } else if (!before_ || idle <= patience) {
      before_ = SnapshotReader::of_job(board_.header().job).read();
    } else {
      return look_closely();
    }
  } catch (const std::exception& e) {
    told_ = idle;
    const std::string why = fmt::format("the job hangs, and can't be looked at: {}", e.what());
    logger("weft.trainer")->warn("{}", why);
    return HangReport{.seconds = idle, .step = rows.step(), .why = why};
  }
  return {};
}

void HangReporter::keep_last_sight() noexcept {
  if (told_) return;
  try {
    Snapshot now = SnapshotReader::of_job(board_.header().job).read({.events = true});
    if (idle_s(now) < kStillS) return;
    add_sights(now, worth_a_sight(now, now));
    record(now);
  } catch (...) {  // the job ends even if the copies could not be saved
  }
}

void HangReporter::record(const Snapshot& seen) const {
  on_record_(true);
  keep_hang(seen);
}

void HangReporter::record_part() noexcept {
  const BoardHeader& header = board_.header();
  try {
    Snapshot now = SnapshotReader::of_job(header.job).read({.events = true});
    std::vector<HostPid> workers;
    for (const ActorRow& row : now.rows) {
      if (row.kind == ActorKind::worker && row.pid > 0) workers.push_back({header.host, row.pid});
    }
    add_sights(now, workers);
    keep_hang(now);
  } catch (const std::exception& e) {
    logger("weft.trainer")->warn("this host's part of the hung job can't be kept: {}", e.what());
  }
}

void HangReporter::forget_part() noexcept {
  forget_hang(board_.header().run_dir, board_.header().host);
}

void HangReporter::moves_again() {
  least_patience_s_ = std::max(least_patience_s_, 2 * *told_);
  forget_hang(board_.header().run_dir);
  on_record_(false);
  logger("weft.trainer")->warn("the job moves again after {:.0f} s", *told_);
  told_.reset();
}

/// Derives the patience from the job's events, and reports a hang if there was no progress for
/// longer. The derived patience is cached, because reading the events of 16 chips takes 12 ms of
/// CPU time, and would happen in every second of a long step.
std::optional<HangReport> HangReporter::look_closely() {
  Snapshot now = SnapshotReader::of_job(board_.header().job).read({.events = true});
  const double by_rows = ::weft::patience_s({.rows = now.rows});
  const double by_events = ::weft::patience_s(now);
  steps_patience_s_ = by_events > by_rows ? by_events : 0;
  const double patience = patience_s_.value_or(std::max(least_patience_s_, by_events));
  std::optional<HangReport> hang;
  if (is_hung(now, patience) && !has_moved(*before_, now)) {
    told_ = idle_s(now);
    hang = report(now);
  }
  before_ = std::move(now);
  return hang;
}

HangReport HangReporter::report(const Snapshot& now) const {
  Snapshot seen = now;
  add_sights(seen, worth_a_sight(*before_, seen));
  const Why why = explain(*before_, seen, {.patience_s = patience_s_.value_or(0)});
  record(seen);
  logger("weft.trainer")
      ->warn("the job hangs: nothing has moved for {:.0f} s. `weft inspect why {}` says:\n{}",
             why.idle_s, why.job, first_lines(to_text(why)));
  return {.seconds = why.idle_s,
          .step = seen.step(),
          .why = first_lines(to_text(why)),
          .path = board_.header().run_dir + "/hang"};
}

}  // namespace weft
