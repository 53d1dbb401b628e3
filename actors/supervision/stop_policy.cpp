#include "actors/supervision/stop_policy.hpp"

#include <csignal>

namespace weft {
namespace {

/// A later SIGTERM is a request of its own: by someone who doesn't want to wait.
constexpr std::chrono::seconds kOneRequest{2};

}  // namespace

StopPolicy::Verdict StopPolicy::on_signal(int signal, Time now, bool over) {
  if (signal == SIGTERM && first_term_ && now - *first_term_ <= kOneRequest) return Verdict::ignore;
  if (over) return Verdict::leave;
  if (signal != SIGTERM || first_term_) return Verdict::cancel;
  first_term_ = now;
  return Verdict::preempt;
}

}  // namespace weft
