#pragma once
/// TrainerLink: what fit() sees of the trainer actor.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <weft/job/result.hpp>

#include "actors/protocol/protocol.hpp"
#include "actors/runtime/worker_link.hpp"
#include "actors/supervision/action.hpp"
#include "actors/trainer/host_link.hpp"
#include "actors/trainer/job_spec.hpp"
#include "transport/blackbox/recorder.hpp"

namespace weft {

namespace trainer_event {

/// The loops begin, for the first time or again.
struct Started {
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
};
/// The job survives this loss.
struct Lost {
  Failure failure;
};
/// A report of the run, each once.
struct Reported {
  Report report;
  /// Of the last checkpoint in which every worker has its part.
  std::optional<std::uint64_t> whole_step;
};
/// A checkpoint is whole: every worker has its part.
struct Saved {
  std::uint64_t step = 0;
  std::string path;
};
/// All workers have ended, well or by a failure.
struct Ended {
  std::optional<Failure> failure;
  std::uint64_t step = 0;  ///< the number of steps that had ended
  std::vector<Failure> survived;
  std::string whole_checkpoint;  ///< the last one in which every worker has its part, or ""
  std::vector<std::string> worker_metrics;  ///< of each worker's last report, or ""
  std::vector<std::string> returned;        ///< by each worker's loop, or ""; empty: it failed
};

}  // namespace trainer_event

/// What fit() is told by the trainer actor. A Kill and a Launch are about a worker's process.
using TrainerEvent =
    std::variant<trainer_event::Started, trainer_event::Lost, trainer_event::Reported,
                 trainer_event::Saved, action::Kill, action::Launch, trainer_event::Ended>;

/// The checkpoint from which a job continues.
struct ResumePoint {
  std::string path;
  std::uint64_t step = 0;
  std::uint64_t seed = 0;
  std::string rescued_from{};  ///< the run folder of the job that left it; "" as a rule
};

struct TrainerLinkOptions {
  JobSpec spec;
  std::optional<ResumePoint> resume;
  Assignment assignment;  ///< of every worker
  std::string token;
  bool tells_all_reports = false;  ///< not those of worker 0 alone
  bool any_process_joins = false;  ///< not only those that process_started() tells of
  std::string socket_path;         ///< "" where the only worker is in this process
  /// Called on the trainer actor's thread.
  std::function<void(TrainerEvent)> on_event;
};

/// Owns the actor system. Thread-safe.
class TrainerLink {
 public:
  /// `recorder` writes the trainer's own row and ring. `host`, and what `recorder` writes to, must
  /// outlive it. Throws io if the socket can't be made.
  static std::unique_ptr<TrainerLink> start(TrainerLinkOptions options, HostLink& host,
                                            const Recorder& recorder);
  virtual ~TrainerLink() = default;

  /// Where workers reach it: "unix:/path" or "tls://host:port"; "" where it doesn't listen.
  virtual const std::string& address() const = 0;
  virtual void process_started(int worker, int pid) = 0;
  virtual void process_ended(const ProcessEnded& ended) = 0;
  /// The job is to end within JobSpec::grace_s, its loops at one step.
  virtual void preempt(const std::string& reason) = 0;
  virtual void cancel(Errc code, const std::string& reason) = 0;
  /// The line of a worker that is a thread of this process.
  virtual std::unique_ptr<WorkerLink> local_worker(int worker, const LinkRecorder& recorder) = 0;
};

}  // namespace weft
