#pragma once
/// Action: what JobState wants done.

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

/// To be sent to every worker that has joined; but for `delay`, `restart` and `kill`, which are for
/// the processes.
struct Action {
  enum class Kind : std::uint8_t {
    start,       ///< the generation begins, at step `number`
    asked,       ///< a new program of `worker` for run `number`
    admit,       ///< programs below `number`
    grant,       ///< steps below `number`
    pause,       ///< no further step may begin
    end_at,      ///< from step `number` on the loops are told to end
    loop_ended,  ///< that of `worker`, after `number` programs
    unwind,      ///< the generation is over, `text` says why
    kill,        ///< the process of `worker`; `number` 1: it hangs, and may say where
    delay,       ///< restart_due() of `worker` in `number` milliseconds
    restart,     ///< the process of `worker`, once its link is gone
    cancel,      ///< the job has failed, `text` says why
    stop,        ///< the job is over
  };
  Kind kind = Kind::start;
  int worker = -1;
  std::uint64_t number = 0;
  std::uint32_t sequence = 0;  ///< asked
  std::string text{};          ///< of loop_ended: what the last program ran for
};
using Actions = std::vector<Action>;

}  // namespace weft
