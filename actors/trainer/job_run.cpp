#include <weft/actors/trainer/job_run.hpp>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <thread>

#include <weft/actors/log.hpp>
#include <weft/actors/trainer/job_place.hpp>
#include <weft/actors/trainer/run_folder.hpp>
#include <weft/actors/trainer/trainer_link.hpp>
#include <weft/actors/trainer/wake_queue.hpp>
#include <weft/actors/trainer/worker_process.hpp>

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

/// How long processes may take to end after the job has, before they are killed.
constexpr std::chrono::milliseconds kGraceFailed{1000};
constexpr std::chrono::milliseconds kGraceEnded{10000};

/// The parts of a running job; destroyed in the reverse of the order in which they were made.
class JobRun {
 public:
  JobRun(const JobSpec& spec, const std::vector<std::shared_ptr<Callback>>& callbacks,
         const std::vector<std::string>& earlier_fits)
      : spec_(spec),
        callbacks_(callbacks),
        earlier_fits_(earlier_fits),
        folder_(spec.storage_path, spec.name, place_.id()),
        board_(place_.make_board(spec, folder_.path())),
        memory_(place_.make_memory(spec.num_chips())) {
    init_logging({.who = "trainer", .file = folder_.path() + "/trainer.log"});
    result_.path = folder_.path();
    result_.job = {.id = place_.id(),
                   .name = spec.name,
                   .path = folder_.path(),
                   .num_workers = spec.num_workers,
                   .mesh = spec.mesh};
    board_.trainer().open(ActorKind::trainer, -1, -1, ::getpid());
    board_.trainer().state(ActorState::starting);
    link_ = TrainerLink::start(
        {.spec = spec,
         .token = place_.token(),
         .run_dir = folder_.path(),
         .socket_path = spec.num_workers == 0 ? "" : place_.socket_path(),
         .on_event = [this](TrainerEvent event) { events_.push(std::move(event)); }},
        memory_, board_);
  }
  ~JobRun() { shutdown_logging(); }

  Result run(const BoundLoop& loop) {
    for (const auto& callback : callbacks_) callback->on_start(result_.job);
    std::jthread local_worker;
    if (spec_.num_workers == 0) {
      local_worker = std::jthread([this, &loop] { run_local(loop); });
    } else {
      start_processes();
    }
    try {
      while (!ended_ || std::ranges::any_of(processes_, &WorkerProcess::running)) turn();
    } catch (...) {
      link_->cancel("an exception in the trainer's process");  // or the local worker never ends
      throw;
    }
    if (local_worker.joinable()) local_worker.join();
    folder_.write_result(result_);
    for (const auto& callback : callbacks_) callback->on_end(result_);
    return std::move(result_);
  }

 private:
  void run_local(const BoundLoop& loop) {
    const auto link = link_->local_worker(0);
    run_worker(*link, 0, place_.token(), place_.id(), memory_, board_, loop, {});
  }

  void start_processes() {
    for (int worker = 0; worker < spec_.num_workers; ++worker) {
      const auto variables = to_variables({.job_id = place_.id(),
                                           .token = place_.token(),
                                           .coordinator_address = "unix:" + place_.socket_path(),
                                           .num_processes = spec_.num_workers,
                                           .process_index = worker,
                                           .earlier_fits = earlier_fits_},
                                          spec_.mesh);
      auto process = std::make_unique<WorkerProcess>(worker, variables);
      link_->process_started(worker, process->pid());
      processes_.push_back(std::move(process));
    }
  }

  /// Waits for whatever comes next, and deals with it.
  void turn() {
    std::vector<pollfd> waits{{.fd = events_.fd(), .events = POLLIN, .revents = 0},
                              {.fd = signals_.fd(), .events = POLLIN, .revents = 0}};
    for (const auto& process : processes_) {
      for (const int fd :
           {process->running() ? process->pidfd() : -1, process->out(), process->err()}) {
        waits.push_back({.fd = fd, .events = POLLIN, .revents = 0});
      }
    }
    ::poll(waits.data(), waits.size(), milliseconds_left());
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      WorkerProcess& process = *processes_[i];
      process.pump();
      if (waits[2 + 3 * i].revents != 0) link_->process_ended(process.reap());
    }
    if (const int signal = signals_.take()) {
      link_->cancel(
          fmt::format("the trainer (pid {}) got SIG{}", ::getpid(), ::sigabbrev_np(signal)));
    }
    while (auto event = events_.pop()) handle(*event);
    if (ended_ && Clock::now() >= *kill_at_) {
      for (const auto& process : processes_) process->kill();
    }
  }

  int milliseconds_left() const {
    if (!kill_at_) return -1;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(*kill_at_ - Clock::now()).count();
    return static_cast<int>(std::max<decltype(left)>(left, 10));
  }

  void handle(const TrainerEvent& event) {
    switch (event.kind) {
      case TrainerEvent::Kind::report: take_report(event.report); break;
      case TrainerEvent::Kind::ended:
        ended_ = true;
        result_.error = event.failure;
        kill_at_ = Clock::now() + (event.failure ? kGraceFailed : kGraceEnded);
        break;
    }
  }

  void take_report(const Report& report) {
    if (report.worker != 0) return;
    result_.metrics = Metrics::parse(report.metrics);
    result_.metrics_history.push_back(result_.metrics);
    folder_.add(result_.metrics);
    if (!report.checkpoint.empty()) {
      result_.checkpoint = Checkpoint{report.checkpoint};
      folder_.keep_checkpoints(spec_.checkpoints_to_keep);
    }
    for (const auto& callback : callbacks_) callback->on_report(result_.metrics);
  }

  const JobSpec& spec_;
  const std::vector<std::shared_ptr<Callback>>& callbacks_;
  const std::vector<std::string>& earlier_fits_;
  SignalQueue signals_;  // before what has to be removed, whatever signal comes
  JobPlace place_;
  RunFolder folder_;
  Board board_;
  JobMemory memory_;
  WakeQueue<TrainerEvent> events_;
  std::unique_ptr<TrainerLink> link_;
  std::vector<std::unique_ptr<WorkerProcess>> processes_;
  Result result_;
  bool ended_ = false;
  std::optional<Clock::time_point> kill_at_;
};

}  // namespace

Result run_job(const JobSpec& spec, const std::vector<std::shared_ptr<Callback>>& callbacks,
               const BoundLoop& loop, const std::vector<std::string>& earlier_fits) {
  // The run is destroyed before an exception leaves: one that nobody catches must leave nothing.
  std::exception_ptr thrown;
  try {
    JobRun run(spec, callbacks, earlier_fits);
    try {
      return run.run(loop);
    } catch (...) {
      thrown = std::current_exception();
    }
  } catch (...) {
    thrown = std::current_exception();
  }
  std::rethrow_exception(thrown);
}

}  // namespace weft
