#pragma once
/// Progress: makes the line that shows the progress of a job.

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace weft {

/// The state of a job at one moment, as its board shows it.
struct JobGlance {
  std::string name;
  std::uint64_t step = 0;
  int chips = 0;
  std::optional<double> loss{};  ///< the last reported loss
};

/// Makes the progress line from glances; the glances of the last few seconds determine the rate.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  /// `steps` is the total number of steps of the job; 0: unknown.
  explicit Progress(double steps) : steps_(steps) {}

  void add(const JobGlance& glance, Clock::time_point now);
  /// Returns a line such as "digits  step 2851  890 steps/s  loss 0.31  16 chips  ETA 0:41", cut to
  /// `width` columns; "" if there was no glance.
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
