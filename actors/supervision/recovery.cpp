#include "actors/supervision/recovery.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace weft {
namespace {

/// After this many equal failures of one worker in one step, with no step committed, the program
/// itself is taken to be wrong. Failures of other workers may come in between.
constexpr int kStartFailuresMax = 3;
constexpr std::uint64_t kDelayMaxMs = 60'000;

/// Whether the failure would come again each time that the job is tried.
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

/// Steps 0 and 1 count as one, because a loop may be one step ahead of its chips.
std::uint64_t step_of(const Failure& failure) { return std::max<std::uint64_t>(failure.step, 1); }

bool are_alike(const Failure& a, const Failure& b) {
  return a.worker == b.worker && step_of(a) == step_of(b) && a.code == b.code &&
         a.signal == b.signal && a.exit_code == b.exit_code;
}

}  // namespace

std::optional<std::string> Recovery::refuse(const Failure& failure, std::uint64_t committed) {
  if (!policy_.recovers()) return "";
  if (is_wrong_use(failure.code)) return "; it would fail so again, and is not started again";
  const bool is_next = incident_.empty() || incident_.contains(failure.worker);
  if (is_next && policy_.max_failures > 0 && incidents_ >= policy_.max_failures) {
    return fmt::format("; run.failure.max_failures = {} failures came before it",
                       policy_.max_failures);
  }
  const auto is_alike = [&](const Failure& other) { return are_alike(other, failure); };
  if (committed == 0 && 1 + std::ranges::count_if(failures_, is_alike) == kStartFailuresMax) {
    return fmt::format("; it failed so {} times, and no step was kept", kStartFailuresMax);
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
  return {};
}

void Recovery::resumed(std::uint64_t step) {
  incident_.clear();
  last_step_ = step;
}

std::uint64_t Recovery::delay_ms() const {
  if (in_a_row_ < 2) return 0;
  const int doublings = std::min(in_a_row_ - 2, 20);
  return std::min(policy_.backoff_ms << doublings, kDelayMaxMs);
}

}  // namespace weft
