#pragma once
/// TrainerLink: what fit() sees of the trainer actor.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <weft/result.hpp>

#include "actors/protocol/protocol.hpp"
#include "actors/runtime/worker_link.hpp"
#include "actors/trainer/job_spec.hpp"
#include "transport/board/board.hpp"
#include "transport/job/job_memory.hpp"

namespace weft {

struct TrainerEvent {
  enum class Kind : std::uint8_t { started, report, kill, restart, ended };
  Kind kind = Kind::started;       ///< started: the loops begin, for the first time or again
  Report report{};                 ///< report
  std::string whole_checkpoint{};  ///< ended: the last that all workers reported or saved, or ""
  std::optional<std::uint64_t> whole_step{};  ///< report: of that checkpoint
  int worker = -1;                            ///< kill, restart: whose process
  bool dump_stack = false;                    ///< kill: after it has said where it is
  std::optional<Failure> failure{};           ///< ended
  std::vector<Failure> survived{};            ///< ended
  std::vector<std::string> worker_metrics{};  ///< ended: of each worker's last report, or ""
};

/// The checkpoint from which a job goes on.
struct ResumePoint {
  std::string path;
  std::uint64_t step = 0;
  std::uint64_t seed = 0;
};

struct TrainerLinkOptions {
  JobSpec spec;
  std::optional<ResumePoint> resume;
  Assignment assignment;  ///< of every worker
  std::string token;
  bool any_process_joins = false;  ///< not only those that process_started() tells of
  std::string socket_path;         ///< "" where the only worker is in this process
  /// Called on the trainer actor's thread.
  std::function<void(TrainerEvent)> on_event;
};

/// Owns the actor system. Thread-safe.
class TrainerLink {
 public:
  /// `memory` and `board` must outlive it. Throws io if the socket can't be made.
  static std::unique_ptr<TrainerLink> start(TrainerLinkOptions options, JobMemory& memory,
                                            Board& board);
  virtual ~TrainerLink() = default;

  /// Where workers reach it: "unix:/path" or "tls://host:port"; "" where it doesn't listen.
  virtual const std::string& address() const = 0;
  virtual void process_started(int worker, int pid) = 0;
  virtual void process_ended(const ProcessEnded& ended) = 0;
  /// The job is to end within JobSpec::grace_s, its loops at one step.
  virtual void preempt(const std::string& reason) = 0;
  virtual void cancel(Errc code, const std::string& reason) = 0;
  /// The line of a worker that is a thread of this process.
  virtual std::unique_ptr<WorkerLink> local_worker(int worker) = 0;
};

}  // namespace weft
