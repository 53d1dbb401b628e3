#pragma once
/// Timeout: ends a program that has used up its time.

#include <chrono>
#include <csignal>
#include <optional>

namespace weft {

/// Decides when to send which signal. The first SIGTERM gives the job 25 seconds to save its state.
/// A second SIGTERM cancels the job. SIGKILL ends a program that doesn't react.
class Timeout {
 public:
  using Clock = std::chrono::steady_clock;

  /// `seconds` = 0 means no timeout.
  Timeout(double seconds, Clock::time_point begin) {
    if (seconds > 0) {
      next_ = begin +
              std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    }
  }

  /// Returns the time of the next signal; nothing if there is none.
  std::optional<Clock::time_point> deadline() const { return next_; }
  bool is_over() const { return stage_ > 0; }
  /// Returns the signal to send now, if any.
  std::optional<int> due(Clock::time_point now) {
    if (!next_ || now < *next_) return {};
    const bool is_last = ++stage_ == 3;
    next_.reset();
    if (stage_ == 1) next_ = now + kToSave;
    if (stage_ == 2) next_ = now + kToCancel;
    return is_last ? SIGKILL : SIGTERM;
  }

 private:
  static constexpr std::chrono::seconds kToSave{30};
  static constexpr std::chrono::seconds kToCancel{10};
  int stage_ = 0;
  std::optional<Clock::time_point> next_;
};

}  // namespace weft
