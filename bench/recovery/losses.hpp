#pragma once
/// Kills workers of a job that runs, and sees in its shared memory how it goes on.

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <weft/callback.hpp>

namespace weft::bench {

/// A kill, and how many milliseconds after it what came next was to be seen.
struct Loss {
  int victim = -1;
  double noticed_ms = 0;          ///< the others were told to leave their loops
  double started_ms = 0;          ///< the victim's successor had mapped the job's memory
  double resumed_ms = 0;          ///< all were there, and the loops entered again
  double stepped_ms = 0;          ///< every chip had completed a step
  std::uint64_t steps_again = 0;  ///< that had been begun before the kill
};

/// To be told of the job by fit(). Workers are picked at random, and killed at random instants, so
/// many of them at once.
class LossMaker : public Callback {
 public:
  LossMaker(int kills, std::uint64_t seed, int at_once = 1)
      : kills_(kills), seed_(seed), at_once_(at_once) {}
  /// Enough for a job that loses workers so often.
  static std::uint64_t steps_of_job(int kills);

  void on_start(const JobInfo& job) override;
  void on_end(const Result& result) override;

  /// Once fit() has returned. What is missing of the kills says why().
  const std::vector<Loss>& losses() const { return losses_; }
  const std::string& why() const { return why_; }

 private:
  void run(const std::string& job, std::stop_token stop);

  int kills_;
  std::uint64_t seed_;
  int at_once_;
  std::vector<Loss> losses_;  // written by the thread
  std::string why_;
  std::jthread thread_;
};

}  // namespace weft::bench
