#include "actors/supervision/recovery.hpp"

#include <algorithm>
#include <csignal>

#include <fmt/format.h>

namespace weft {
namespace {

/// After this many equal failures of one worker without a step in between, the program itself is
/// assumed to be wrong, or something that it needs to be missing. Failures of other workers in
/// between don't matter.
constexpr int kRepeatsMax = 3;
/// The corresponding limit for lost hosts and for kills from outside. It applies only before the
/// first step, and is higher because on a slow machine such a kill may be an accident. The delays
/// between so many kills give the job minutes to reach its first step.
constexpr int kKillsMax = 20;
constexpr std::uint64_t kDelayMaxMs = 60'000;

/// Returns whether the worker would fail in the same way each time that it is started.
bool is_wrong_use(Errc code) {
  switch (code) {
    case Errc::invalid_argument:
    case Errc::mesh_mismatch:
    case Errc::program_divergence:
    case Errc::not_found:
    case Errc::corrupt:
    case Errc::version:
    case Errc::unavailable:
    case Errc::cancelled:
    case Errc::uneven_loops: return true;
    default: return false;
  }
}

/// Returns the failure's step. Steps 0 and 1 count as the same step, because a loop may be a step
/// ahead of its chips.
std::uint64_t step_of(const Failure& failure) { return std::max<std::uint64_t>(failure.step, 1); }

bool are_alike(const Failure& a, const Failure& b) {
  return a.worker == b.worker && step_of(a) == step_of(b) && a.code == b.code &&
         a.signal == b.signal && a.exit_code == b.exit_code;
}

}  // namespace

bool is_kill(const Failure& failure) {
  return failure.signal == SIGKILL || failure.signal == SIGTERM || failure.signal == SIGINT ||
         failure.signal == SIGHUP;
}

std::optional<std::string> Recovery::refuse(const Failure& failure, std::uint64_t committed,
                                            LossKind kind) {
  if (!policy_.recovers()) return "";
  if (is_wrong_use(failure.code))
    return "; the worker would fail in the same way again, so it is not started again";
  const bool is_next = incident_.empty() || incident_.contains(failure.worker);
  if (is_next && policy_.max_failures > 0 && incidents_ >= policy_.max_failures) {
    return fmt::format("; run.failure.max_failures = {} failures had happened before",
                       policy_.max_failures);
  }
  if (committed > last_step_) in_vain_.clear();
  const auto is_alike = [&](const Failure& other) { return are_alike(other, failure); };
  const bool is_chance =
      kind == LossKind::host || (is_kill(failure) && kind != LossKind::out_of_memory);
  const int repeats_max = is_chance ? kKillsMax : kRepeatsMax;
  const bool may_be_told = kind != LossKind::before_join && (!is_chance || committed == 0);
  if (may_be_told && 1 + std::ranges::count_if(in_vain_, is_alike) >= repeats_max) {
    return committed == 0
               ? fmt::format("; the worker failed like this {} times, and no step was kept",
                             repeats_max)
               : fmt::format(
                     "; the worker failed like this {} times, and no step was taken after step {}",
                     repeats_max, committed);
  }
  if (is_next) {
    const bool progress = incidents_ == 0 || committed > last_step_;
    in_a_row_ = progress ? 1 : in_a_row_ + 1;
    last_step_ = committed;
    ++incidents_;
    incident_.clear();
  }
  incident_.insert(failure.worker);
  failures_.push_back(failure);
  if (kind != LossKind::before_join) in_vain_.push_back(failure);
  return {};
}

void Recovery::resumed(std::uint64_t step) {
  incident_.clear();
  if (step > last_step_) in_vain_.clear();
  last_step_ = step;
}

std::uint64_t Recovery::delay_ms() const {
  if (in_a_row_ < 2) return 0;
  const int doublings = std::min(in_a_row_ - 2, 20);
  return std::min(policy_.backoff_ms << doublings, kDelayMaxMs);
}

}  // namespace weft
