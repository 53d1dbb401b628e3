#pragma once
/// fit() calls of loops without names: main() runs again in each worker process, up to the call
/// that the job is. Which one that is, both sides say, and nothing runs before they agree.

#include <string>
#include <string_view>

#include <weft/config.hpp>
#include <weft/result.hpp>
#include <weft/trainer.hpp>

#include "actors/link/environment.hpp"
#include "actors/protocol/protocol.hpp"

namespace weft {

/// XXH3 of the config as CBOR, in hex.
std::string digest_of(const Config& config);

/// Of a loop without a name, by its type, its function, its config and the line of the fit() call.
LoopIdentity identity_of(const TrainLoop& loop, const Config& config, std::string_view site);

/// The one that may run with worker processes: they find its call by their way through main(), and
/// two at once could not be told apart. Throws invalid_argument where another one runs, or where
/// the loop has captures and this isn't the main thread.
class NamelessFit {
 public:
  NamelessFit(const TrainLoop& loop, const LoopIdentity& identity);
  ~NamelessFit();
  NamelessFit(const NamelessFit&) = delete;
  NamelessFit& operator=(const NamelessFit&) = delete;

  /// What a worker process must know, as text: this call, and how those before it ended.
  std::string to_text() const;

 private:
  const LoopIdentity identity_;
};

/// How a fit() call of this process ended, for workers that come past it: by a result, or by what
/// was thrown.
void note_result(const LoopIdentity& identity, const Result& result);
void note_thrown(const LoopIdentity& identity, Errc code, std::string_view message);

/// In a worker process. Returns what the call returned in the trainer's process, or throws what it
/// threw, where it came before the job's; runs the worker and ends the process where it is the
/// job's. Where it is neither, the job fails with both calls named: at once on the main thread; on
/// another one, as a thread that is to come may be the job's, after 5 s.
Result pass_or_become_worker(const WorkerEnvironment& environment, const TrainLoop& loop,
                             const Config& config, const LoopIdentity& identity);

}  // namespace weft
