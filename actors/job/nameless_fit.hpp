#pragma once
/// Identifies the fit() calls of loops without names. For such a loop, each worker process runs
/// main() again, up to the fit() call that started the job. The trainer and the worker both compute
/// the identity of that call, and the loop runs only if the identities are equal.

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

/// Marks the process's only running fit() call whose loop has no name and whose job has worker
/// processes. Workers find this call by running main(), so they can't distinguish two calls that
/// run at the same time, or two loops that capture different values. The constructor throws
/// invalid_argument if another marked call runs, or if the loop has captures.
class NamelessFit {
 public:
  NamelessFit(const TrainLoop& loop, const LoopIdentity& identity);
  ~NamelessFit();
  NamelessFit(const NamelessFit&) = delete;
  NamelessFit& operator=(const NamelessFit&) = delete;

  /// Returns a text for worker processes: the identity of this call, and how earlier calls ended.
  std::string to_text() const;

 private:
  const LoopIdentity identity_;
};

/// Records how the fit() call with this number ended. In workers of later jobs and on other hosts,
/// the same call then returns the same result or throws the same error.
void note_result(const LoopIdentity& identity, int number, const Result& result);
void note_thrown(const LoopIdentity& identity, int number, Errc code, std::string_view message);
/// Returns what other hosts are told when the call with this number begins.
FitCalls calls_until(int number);
/// Returns the result or throws the error with which a fit() call of another process has ended, as
/// `outcome` says. Also throws the errors of Result::load().
Result result_of(const std::string& outcome);

/// Handles a fit() call in a worker process. If the trainer made this call before the job's call,
/// returns or throws the same as in the trainer. If it is the job's call, runs the worker and ends
/// the process. Otherwise the job fails with an error that names both calls. It fails at once if
/// the main thread made the call, or after 5 s if another thread did, because a thread that starts
/// later may make the job's call.
Result pass_or_become_worker(const WorkerEnvironment& environment, const TrainLoop& loop,
                             const Config& config, const LoopIdentity& identity);

}  // namespace weft
