#pragma once
/// Finding the first op that gives a NaN or an infinity (torch.autograd.detect_anomaly).

#include <source_location>

namespace weft {

class Trace;

/// See detect_anomaly().
class AnomalyScope {
 public:
  explicit AnomalyScope(std::source_location loc = std::source_location::current());
  ~AnomalyScope();
  AnomalyScope(const AnomalyScope&) = delete;
  AnomalyScope& operator=(const AnomalyScope&) = delete;

 private:
  Trace& trace_;
  bool before_;
};

/// While what it returns lives, each program that this thread's loop runs is checked op by op, the
/// backward pass too: the first that makes a NaN, or of finite operands an infinity, ends the job
/// with its name and the line that it comes from. In the loop, in all workers:
///
///     const auto scope = weft::detect_anomaly();
///
/// The same for a whole program, unchanged: WEFT_DETECT_ANOMALY=1. Every op reads its operands and
/// results once more: for a run that looks for a mistake.
[[nodiscard]] inline AnomalyScope detect_anomaly(
    std::source_location loc = std::source_location::current()) {
  return AnomalyScope(loc);
}

}  // namespace weft
