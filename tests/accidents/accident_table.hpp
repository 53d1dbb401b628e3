#pragma once
/// The accidents, and the answers of `weft inspect why` that are right. docs/debugging.md tells
/// people of them.

#include <string>
#include <vector>

namespace weft::accidents {

/// The part that the test takes in an accident.
enum class Hand {
  none,
  ends,         ///< the job ends by itself
  stop_all,     ///< all workers are stopped, then the trainer
  hold,         ///< the test holds worker 1 as a debugger does
  freeze,       ///< worker 1 is in a cgroup that is frozen
  other_pids,   ///< who asks is in another pid namespace
  other_clock,  ///< who asks is in another time namespace
  small_disk,   ///< the run folder, or the checkpoints, are on a small file system
  small_shm,    ///< /dev/shm is a small file system
  no_trainer,   ///< the trainer is killed, and its launcher isn't there to start it again
};

struct Accident {
  const char* name;
  const char* mode;  ///< of accident_app
  Hand hand = Hand::none;
  int code = 10;                          ///< of `weft inspect why`
  std::vector<std::string> says{};        ///< while it lasts
  std::vector<std::string> never{};       ///< in no answer
  std::vector<std::string> afterwards{};  ///< once the job is gone; empty: the same
  bool is_killed = false;                 ///< the trainer can't end it: SIGKILL ends it
  int workers = 3;
};

const std::vector<Accident>& accidents();

/// A job that is odd and healthy.
struct Healthy {
  const char* name;
  const char* mode;
  enum class Hand { none, strace, stop_and_continue } hand = Hand::none;
  int workers = 3;
};
const std::vector<Healthy>& healthy_jobs();

}  // namespace weft::accidents
