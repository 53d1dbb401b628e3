#pragma once
/// Kills workers of a running job, and observes in the job's shared memory how it continues.

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <weft/job/callback.hpp>

namespace weft::bench {

/// A kill, and the milliseconds from the kill to each of these events.
struct Loss {
  int victim = -1;
  double noticed_ms = 0;          ///< the other workers were told to leave their loops
  double started_ms = 0;          ///< the worker's new process had mapped the job's memory
  double resumed_ms = 0;          ///< all workers had entered their loops again
  double stepped_ms = 0;          ///< every chip had completed a step
  std::uint64_t steps_again = 0;  ///< steps that had begun before the kill and were run again
};

/// Kills workers, as a callback for fit(). Picks workers and times at random, and kills `at_once`
/// workers together.
class LossMaker : public Callback {
 public:
  LossMaker(int kills, std::uint64_t seed, int at_once = 1)
      : kills_(kills), seed_(seed), at_once_(at_once) {}
  /// Returns a number of steps that is enough for a job with `kills` kills.
  static std::uint64_t steps_of_job(int kills);

  void on_start(const JobInfo& job) override;
  void on_end(const Result& result) override;

  /// These are valid after fit() has returned. If fewer workers were killed than requested, why()
  /// is the reason.
  const std::vector<Loss>& losses() const { return losses_; }
  const std::string& why() const { return why_; }

 private:
  void run(const std::string& job, std::stop_token stop);

  int kills_;
  std::uint64_t seed_;
  int at_once_;
  std::vector<Loss> losses_;  // written by the thread that kills
  std::string why_;
  std::jthread thread_;
};

}  // namespace weft::bench
