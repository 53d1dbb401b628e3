#pragma once
/// This table lists the accidents and the right answers of `weft inspect why` to them.
/// docs/debugging.md describes these accidents to users.

#include <string>
#include <vector>

namespace weft::accidents {

/// The test's own action on a job, or on its surroundings, to cause an accident.
enum class Hand {
  none,
  ends,         ///< the job ends by itself
  stop_all,     ///< all workers are stopped, then the trainer
  hold,         ///< the test holds worker 1 as a debugger would
  freeze,       ///< worker 1 is in a frozen cgroup
  other_pids,   ///< the process of `weft inspect` is in another pid namespace
  other_clock,  ///< the process of `weft inspect` is in another time namespace
  small_disk,   ///< the run folder, or the checkpoints, are on a small file system
  small_shm,    ///< /dev/shm is a small file system
  no_trainer,   ///< the trainer is killed, and no launcher restarts it
};

struct Accident {
  const char* name;
  const char* mode;  ///< the --mode of accident_app
  Hand hand = Hand::none;
  int code = 10;                     ///< the exit code of `weft inspect why`
  std::vector<std::string> says{};   ///< words that the answer has while the accident lasts
  std::vector<std::string> never{};  ///< words that no answer may have
  /// Words that the answer has after the job's end; if empty, it has the words in `says`.
  std::vector<std::string> afterwards{};
  bool is_killed = false;  ///< the worker doesn't end when it is told to, so the trainer kills it
  int workers = 3;
  const char* patience = "0.3";  ///< the --patience of `weft inspect why`
};

const std::vector<Accident>& accidents();

/// A job that behaves oddly but is healthy.
struct Healthy {
  const char* name;
  const char* mode;
  enum class Hand { none, strace, stop_and_continue } hand = Hand::none;
  int workers = 3;
  bool is_stored = false;  ///< an earlier job has stored the plans of this one
};
const std::vector<Healthy>& healthy_jobs();

}  // namespace weft::accidents
