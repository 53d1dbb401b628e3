#pragma once
/// TrainerLink: the interface through which fit() uses the trainer's actor.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <weft/job/result.hpp>

#include "actors/commands/command_desk.hpp"
#include "actors/protocol/protocol.hpp"
#include "actors/runtime/worker_link.hpp"
#include "actors/supervision/action.hpp"
#include "actors/trainer/host_link.hpp"
#include "actors/trainer/job_spec.hpp"
#include "transport/blackbox/recorder.hpp"

namespace weft {

namespace trainer_event {

/// Tells that the loops begin, for the first time or again.
struct Started {
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  bool has_copies = false;  ///< each host stores its own copies of checkpoints
};
/// Tells that the job has survived a failure.
struct Lost {
  Failure failure;
};
/// Contains a report of the run. Each report is sent once.
struct Reported {
  Report report;
  /// The step of the last complete checkpoint, in which every worker has its part.
  std::optional<std::uint64_t> whole_step;
};
/// Tells that a checkpoint is complete, because every worker has its part in it.
struct Saved {
  std::uint64_t step = 0;
  std::string path;
};
/// Tells that all workers have ended, successfully or by a failure.
struct Ended {
  std::optional<Failure> failure;
  std::uint64_t step = 0;  ///< the number of completed steps
  std::vector<Failure> survived;
  std::string whole_checkpoint;             ///< the last complete one, or ""
  std::vector<std::string> worker_metrics;  ///< the metrics of each worker's last report, or ""
  /// The value that each worker's loop returned, or "". No elements if the job failed.
  std::vector<std::string> returned;
};

}  // namespace trainer_event

/// An event that the trainer's actor reports to fit(). Kill and Launch order fit() to kill or start
/// a worker's process.
using TrainerEvent =
    std::variant<trainer_event::Started, trainer_event::Lost, trainer_event::Reported,
                 trainer_event::Saved, action::Kill, action::Launch, trainer_event::Ended>;

/// A checkpoint from which a job may continue.
struct ResumePoint {
  std::string path;
  std::uint64_t step = 0;
  std::uint64_t seed = 0;
  std::string copy_id{};       ///< by id_of_copy(); "" if the job has one host or the path is a URL
  std::string rescued_from{};  ///< run folder of the job that was rescued, or ""
  std::vector<StoredCommand> commands{};
};

struct TrainerLinkOptions {
  JobSpec spec;
  /// The job begins with the first of these checkpoints that has a copy on all hosts. If there are
  /// no checkpoints here, it begins at step 0.
  std::vector<ResumePoint> resumes;
  bool hosts_look = false;  ///< the other hosts look for host 0's mark in the checkpoint folder
  Assignment assignment;    ///< the same for every worker
  std::string job_id;
  std::string token;
  std::string fits;  ///< HostWelcome::fits, for workers of other hosts
  FitCalls calls;    ///< fit() calls of this process
  /// True if the reports of all workers are reported to fit(), not only those of worker 0.
  bool tells_all_reports = false;
  /// True if any process may join, not only a process that process_started() has reported.
  bool any_process_joins = false;
  std::string socket_path;  ///< "" if the only worker is in this process
  /// The next two functions are called on the trainer actor's thread.
  std::function<void(TrainerEvent)> on_event;
  std::function<void(const CommandAnswer&)> on_answer;  ///< called once for each post()
};

/// Owns the job's actor system. Thread-safe.
class TrainerLink {
 public:
  /// Starts the trainer's actor. `recorder` writes the trainer's own row and ring. `host`, and the
  /// memory to which `recorder` writes, must outlive the link. Throws io if the trainer can't
  /// listen.
  static std::unique_ptr<TrainerLink> start(TrainerLinkOptions options, HostLink& host,
                                            const Recorder& recorder);
  virtual ~TrainerLink() = default;

  /// Returns the address at which workers reach the trainer, "unix:/path" or "tls://host:port"; ""
  /// if the trainer doesn't listen.
  virtual const std::string& address() const = 0;
  virtual void process_started(int worker, int pid) = 0;
  virtual void process_ended(const ProcessEnded& ended) = 0;
  /// Makes the job end within JobSpec::grace_s, with all its loops at the same step.
  virtual void preempt(const std::string& reason) = 0;
  virtual void cancel(Errc code, const std::string& reason) = 0;
  virtual void post(const CommandPost& post) = 0;
  /// Makes the other hosts store (true) or remove their parts of the record of a hang.
  virtual void keep_hang(bool is_kept) = 0;
  /// Returns a link for a worker that is a thread of this process.
  virtual std::unique_ptr<WorkerLink> local_worker(int worker, const LinkRecorder& recorder) = 0;
};

}  // namespace weft
