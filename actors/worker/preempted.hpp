#pragma once
/// Preempted: what ends a loop that doesn't ask whether to end.

#include <weft/spmd/error.hpp>

namespace weft {

/// Thrown by the sync after the step at which TrainContext::reached_preemption() became true, in
/// every worker alike, where no loop of the job has ever asked it. The loop is left; that is no
/// failure of its own.
class Preempted : public Error {
 public:
  Preempted()
      : Error(Errc::cancelled,
              "the job is to end (SIGTERM), and this loop has not asked ctx.reached_preemption()") {
  }
};

}  // namespace weft
