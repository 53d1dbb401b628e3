#pragma once
/// fit() calls of loops without names: main() runs again in each worker process, up to the fit()
/// call that started the job. Trainer and worker both identify that call, and the loop runs only if
/// their identities are equal.

#include <string>
#include <string_view>

#include <weft/job/config.hpp>
#include <weft/job/result.hpp>
#include <weft/train/trainer.hpp>

#include "actors/link/environment.hpp"
#include "actors/protocol/protocol.hpp"

namespace weft {

/// XXH3 of the config as CBOR, in hex.
std::string digest_of(const Config& config);

/// The identity of a loop without a name: its type, its function, its config and the line of the
/// fit() call.
LoopIdentity identity_of(const TrainLoop& loop, const Config& config, std::string_view site);

/// The only nameless fit() call of the process that runs with worker processes. Workers find the
/// call by running main(), and could not tell two calls at the same time apart, nor two loops that
/// capture other values. Throws invalid_argument if another such call runs, or if the loop has
/// captures.
class NamelessFit {
 public:
  NamelessFit(const TrainLoop& loop, const LoopIdentity& identity);
  ~NamelessFit();
  NamelessFit(const NamelessFit&) = delete;
  NamelessFit& operator=(const NamelessFit&) = delete;

  /// The identity of this call, and how the calls before it ended, as text for worker processes.
  std::string to_text() const;

 private:
  const LoopIdentity identity_;
};

/// Records how a fit() call of this process ended, for the workers of later calls, in which this
/// call returns the same result or throws the same error.
void note_result(const LoopIdentity& identity, const Result& result);
void note_thrown(const LoopIdentity& identity, Errc code, std::string_view message);

/// A fit() call in a worker process. If the call came before the job's in the trainer's process, it
/// ends as it did there. If it is the job's, this runs the worker and ends the process. Otherwise
/// the job fails, and the error names both calls: at once on the main thread, and after 5 s on
/// another thread, because a thread that starts later may make the job's call.
Result pass_or_become_worker(const WorkerEnvironment& environment, const TrainLoop& loop,
                             const Config& config, const LoopIdentity& identity);

}  // namespace weft
