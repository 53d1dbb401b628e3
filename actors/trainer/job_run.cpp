#include <weft/actors/trainer/job_run.hpp>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>
#include <exception>
#include <fstream>
#include <thread>

#include <fmt/ranges.h>

#include <weft/actors/log.hpp>
#include <weft/actors/outlet.hpp>
#include <weft/actors/trainer/job_place.hpp>
#include <weft/actors/trainer/run_folder.hpp>
#include <weft/actors/trainer/signal_trap.hpp>
#include <weft/actors/trainer/trainer_link.hpp>
#include <weft/actors/trainer/wake_queue.hpp>
#include <weft/actors/trainer/worker_process.hpp>

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

/// How long processes may take to end after the job has, before they are killed.
constexpr std::chrono::milliseconds kGraceFailed{1000};
constexpr std::chrono::milliseconds kGraceEnded{10000};
/// How long a process that hangs may take to say where.
constexpr std::chrono::milliseconds kStackPatience{200};

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
    logger("weft.transport")
        ->info("chip arenas: {} of {} bytes each, reserved as they are used", spec.num_chips(),
               memory_.arena_capacity());
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
  ~JobRun() {
    processes_.clear();
    link_.reset();  // while there is a log for its last words
    shutdown_logging();
  }

  Result run(const BoundLoop& loop) {
    call_back([&](Callback& callback) { callback.on_start(result_.job); });
    std::jthread local_worker;
    try {
      if (!thrown_ && spec_.num_workers == 0) {
        local_runs_ = true;
        local_worker = std::jthread([this, &loop] { run_local(loop); });
      } else if (!thrown_) {
        start_processes();
      }
      while (!over()) turn();
    } catch (...) {
      // Or the local worker never ends.
      link_->cancel(Errc::cancelled, "an exception in the trainer's process");
      throw;
    }
    if (!result_.error) result_.error = own_failure_;
    on_disk([&] { folder_.write_result(result_); });
    if (!result_.error) result_.error = own_failure_;
    call_back([&](Callback& callback) { callback.on_end(result_); });
    if (thrown_) std::rethrow_exception(thrown_);
    return std::move(result_);
  }

 private:
  void run_local(const BoundLoop& loop) {
    {
      const auto link = link_->local_worker(0);
      run_worker(*link, {.worker = 0, .job_id = place_.id(), .token = place_.token()}, memory_,
                 board_, loop, {});
    }
    local_runs_ = false;
    local_ended_.wake();
  }

  void start_processes() {
    std::ofstream(place_.earlier_fits_path()) << fmt::format("{}", fmt::join(earlier_fits_, "\n"));
    for (int worker = 0; worker < spec_.num_workers; ++worker) {
      processes_.push_back(start_process(worker));
    }
  }

  std::unique_ptr<WorkerProcess> start_process(int worker) {
    const auto variables = to_variables({.job_id = place_.id(),
                                         .token = place_.token(),
                                         .coordinator_address = link_->address(),
                                         .num_processes = spec_.num_workers,
                                         .process_index = worker,
                                         .earlier_fits_path = place_.earlier_fits_path(),
                                         .tls = spec_.tls},
                                        spec_.mesh);
    auto process = std::make_unique<WorkerProcess>(worker, variables, stdout_, stderr_);
    link_->process_started(worker, process->pid());
    return process;
  }

  bool over() const {
    return ended_ && !local_runs_ && std::ranges::none_of(processes_, &WorkerProcess::running) &&
           stdout_.empty() && stderr_.empty();
  }

  /// Waits for whatever comes next, and deals with it.
  void turn() {
    const auto room = [](const Outlet& outlet) {
      return pollfd{.fd = outlet.empty() ? -1 : outlet.fd(), .events = POLLOUT, .revents = 0};
    };
    const auto bytes = [](int fd) { return pollfd{.fd = fd, .events = POLLIN, .revents = 0}; };
    std::vector<pollfd> waits{room(stdout_), room(stderr_), bytes(events_.fd()),
                              bytes(signals_.fd()), bytes(local_ended_.fd())};
    const std::size_t first = waits.size();
    for (const auto& process : processes_) {
      for (const int fd : {process->pidfd(), process->out(), process->err()}) {
        waits.push_back(bytes(fd));
      }
    }
    if (::poll(waits.data(), waits.size(), milliseconds_left()) < 0 && errno != EINTR) {
      fail(Errc::io, "can't watch the workers: poll: {}", std::strerror(errno));
    }
    stdout_.flush();
    stderr_.flush();
    local_ended_.clear();
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      WorkerProcess& process = *processes_[i];
      process.pump();
      if (waits[first + 3 * i].revents != 0) link_->process_ended(process.reap());
    }
    if (const int signal = signals_.take()) interrupted(signal);
    if (const auto event = events_.pop()) handle(*event);  // one: signals come in between
    kill_stuck();
    if (kill_at_ && Clock::now() >= *kill_at_) end_of_patience();
  }

  int milliseconds_left() const {
    std::optional<Clock::time_point> next = kill_at_;
    if (!stuck_.empty()) {
      const Clock::time_point first = stuck_.front().kill_at;
      next = std::min(next.value_or(first), first);
    }
    if (!next) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now()).count();
    return static_cast<int>(std::max<decltype(left)>(left, 0));
  }

  void interrupted(int signal) {
    const std::string got =
        fmt::format("the trainer (pid {}) got SIG{}", ::getpid(), ::sigabbrev_np(signal));
    if (signal == SIGTERM && !preempted_ && !own_failure_) {
      preempted_ = true;
      return link_->preempt(got);
    }
    if (!own_failure_ && !(preempted_ && ended_)) {
      return fail_here({.code = Errc::cancelled, .message = got});
    }
    stdout_.drop();
    stderr_.drop();
    second_signal_ = signal;
    if (ended_ && !kill_at_) leave_if_stuck();
  }

  /// A thread that doesn't come back ends with its process only.
  void leave_if_stuck() {
    if (!local_runs_ || second_signal_ == 0) return;
    place_.remove();
    ::signal(second_signal_, SIG_DFL);
    ::raise(second_signal_);
  }

  /// The job has ended, but not all that ran it.
  void end_of_patience() {
    kill_at_.reset();
    for (const auto& process : processes_) process->kill();
    leave_if_stuck();
    if (local_runs_) {
      logger("weft.trainer")
          ->warn(
              "the job has ended, but its loop in this process has not returned: fit() waits "
              "for it; a second signal ends the process");
    }
  }

  void handle(const TrainerEvent& event) {
    switch (event.kind) {
      case TrainerEvent::Kind::report: take_report(event.report, event.whole_checkpoint); break;
      case TrainerEvent::Kind::kill: kill(*process_of(event.worker), event.dump_stack); break;
      case TrainerEvent::Kind::restart: start_again(event.worker); break;
      case TrainerEvent::Kind::ended:
        ended_ = true;
        result_.error = event.failure;
        result_.failures = event.survived;
        // What is named is whole, where all workers save.
        if (!event.whole_checkpoint.empty()) {
          result_.checkpoint = Checkpoint{event.whole_checkpoint};
        }
        kill_at_ = Clock::now() + (event.failure ? kGraceFailed : kGraceEnded);
        break;
    }
  }

  std::unique_ptr<WorkerProcess>& process_of(int worker) {
    return processes_.at(static_cast<std::size_t>(worker));
  }

  void kill(WorkerProcess& process, bool dump_stack) {
    if (!dump_stack) return process.kill();
    process.ask_for_stack();
    stuck_.push_back({process.pid(), Clock::now() + kStackPatience});
  }

  /// Those that have had the time to say where they are.
  void kill_stuck() {
    while (!stuck_.empty() && Clock::now() >= stuck_.front().kill_at) {
      for (const auto& process : processes_) {
        if (process->pid() == stuck_.front().pid) process->kill();
      }
      stuck_.pop_front();
    }
  }

  void start_again(int worker) {
    if (ended_ || own_failure_ || thrown_) return;
    try {
      process_of(worker) = start_process(worker);
    } catch (const Error& e) {
      fail_here({.code = e.code(), .message = e.what(), .worker = worker});
    }
  }

  void take_report(const Report& report, const std::string& whole) {
    result_.metrics = Metrics::from_cbor(report.metrics);
    result_.metrics_history.push_back(result_.metrics);
    if (!report.checkpoint.empty()) result_.checkpoint = Checkpoint{report.checkpoint};
    on_disk([&] {
      folder_.add_last(result_.metrics_history);
      if (report.checkpoint.empty()) return;
      const std::string& needed = whole.empty() ? report.checkpoint : whole;
      folder_.keep_checkpoints(spec_.checkpoints_to_keep, needed);
    });
    if (own_failure_ || thrown_) return;
    call_back([&](Callback& callback) { callback.on_report(result_.metrics); });
  }

  /// What the run folder doesn't take ends the job.
  template <typename Write>
  void on_disk(const Write& write) {
    try {
      write();
    } catch (const Error& e) {
      fail_here({.code = e.code(), .message = e.what()});
    }
  }

  /// A failure on this side of the link; the job may be over on the other side already.
  void fail_here(Failure failure) {
    if (own_failure_) return;
    link_->cancel(failure.code, failure.message);
    own_failure_ = std::move(failure);
  }

  /// What a callback throws ends the job and comes out of fit().
  template <typename Call>
  void call_back(const Call& call) {
    try {
      for (const auto& callback : callbacks_) call(*callback);
    } catch (...) {
      if (!thrown_) thrown_ = std::current_exception();
      link_->cancel(Errc::loop_failed, "a callback threw an exception");
    }
  }

  const JobSpec& spec_;
  const std::vector<std::shared_ptr<Callback>>& callbacks_;
  const std::vector<std::string>& earlier_fits_;
  SignalTrap signals_;  // before what has to be removed, whatever signal comes
  JobPlace place_;
  RunFolder folder_;
  Board board_;
  JobMemory memory_;
  WakeQueue<TrainerEvent> events_;
  std::unique_ptr<TrainerLink> link_;
  Outlet stdout_{STDOUT_FILENO};
  Outlet stderr_{STDERR_FILENO};
  std::vector<std::unique_ptr<WorkerProcess>> processes_;
  WakeFd local_ended_;
  std::atomic<bool> local_runs_ = false;
  Result result_;
  std::optional<Failure> own_failure_;  ///< of this side of the link
  std::exception_ptr thrown_;           ///< by a callback
  bool preempted_ = false;
  int second_signal_ = 0;
  bool ended_ = false;
  struct Stuck {
    pid_t pid;
    Clock::time_point kill_at;
  };
  std::deque<Stuck> stuck_;  ///< processes that were asked for their stacks, in order
  std::optional<Clock::time_point> kill_at_;  ///< once ended_, until it has come
};

}  // namespace

Result run_job(const JobSpec& spec, const std::vector<std::shared_ptr<Callback>>& callbacks,
               const BoundLoop& loop, const std::vector<std::string>& earlier_fits) {
  // Caught here so that the run is destroyed, and leaves nothing, before an exception that nobody
  // catches ends the process.
  try {
    JobRun run(spec, callbacks, earlier_fits);
    return run.run(loop);
  } catch (...) {
    throw;
  }
}

}  // namespace weft
