#pragma once
/// The one line that says how far a job is.

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace weft {

/// A job at one moment, as its board shows it.
struct JobGlance {
  std::string name;
  std::uint64_t step = 0;
  int chips = 0;
  std::optional<double> loss{};  ///< the last one reported
};

/// Makes the line of glances, of which the latest few seconds give the rate.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  /// `steps`: that the job is to make; 0: not known.
  explicit Progress(double steps) : steps_(steps) {}

  void add(const JobGlance& glance, Clock::time_point now);
  /// "digits  step 2851  890 steps/s  loss 0.31  16 chips  ETA 0:41", cut to `width` columns; ""
  /// where there was no glance.
  std::string line(std::size_t width) const;

 private:
  double steps_per_second() const;

  struct Sample {
    Clock::time_point at;
    std::uint64_t step;
  };
  double steps_;
  std::optional<JobGlance> last_;
  std::deque<Sample> samples_;
};

}  // namespace weft
