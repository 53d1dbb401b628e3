#pragma once
/// Identifies fit() calls of loops without names. For such a loop, main() runs again in each worker
/// process, up to the fit() call that started the job. Trainer and worker both identify that call,
/// and the loop runs only if their identities are equal.

#include <string>
#include <string_view>

#include <weft/job/config.hpp>
#include <weft/job/result.hpp>
#include <weft/train/trainer.hpp>

#include "actors/link/environment.hpp"
#include "actors/protocol/host_messages.hpp"

namespace weft {

/// Returns the XXH3 digest of the config's CBOR, in hex.
std::string digest_of(const Config& config);

/// Returns the identity of a loop without a name: its type, its function, its config and the line
/// of the fit() call.
LoopIdentity identity_of(const TrainLoop& loop, const Config& config, std::string_view site);

/// Marks the process's only fit() call of a loop without a name that runs with worker processes.
/// Workers find the call by running main(). They could not distinguish two calls at the same time,
/// or two loops that capture different values. The constructor throws invalid_argument if another
/// such call runs, or if the loop has captures.
class NamelessFit {
 public:
  NamelessFit(const TrainLoop& loop, const LoopIdentity& identity);
  ~NamelessFit();
  NamelessFit(const NamelessFit&) = delete;
  NamelessFit& operator=(const NamelessFit&) = delete;

  /// Returns the identity of this call, and how the calls before it ended, as text for worker
  /// processes.
  std::string to_text() const;

 private:
  const LoopIdentity identity_;
};

/// Records how the fit() call of this number ended. In the workers of later jobs, and on other
/// hosts, the same call returns the same result or throws the same error.
void note_result(const LoopIdentity& identity, int number, const Result& result);
void note_thrown(const LoopIdentity& identity, int number, Errc code, std::string_view message);
/// Returns what other hosts are told when the call of this number begins.
FitCalls calls_until(int number);
/// Returns the result of a call of another process that has ended so, or throws the call's error.
/// Also throws the errors of Result::load().
Result result_of(const std::string& outcome);

/// Handles a fit() call in a worker process. If the trainer made this call before the job's call,
/// this returns or throws what the trainer's call did. If it is the job's call, this runs the
/// worker and ends the process. Otherwise the job fails with an error that names both calls. The
/// main thread fails at once. Another thread fails after 5 s, because a thread that starts later
/// may make the job's call.
Result pass_or_become_worker(const WorkerEnvironment& environment, const TrainLoop& loop,
                             const Config& config, const LoopIdentity& identity);

}  // namespace weft
