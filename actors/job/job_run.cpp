#include "actors/job/job_run.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <fstream>
#include <thread>

#include "actors/data/run_folder.hpp"
#include "actors/job/job_place.hpp"
#include "actors/job/left_for_rescue.hpp"
#include "actors/job/nameless_fit.hpp"
#include "actors/job/resume.hpp"
#include "actors/job/running_jobs.hpp"
#include "actors/launch/launch_variables.hpp"
#include "actors/launch/worker_processes.hpp"
#include "actors/process/job_thread.hpp"
#include "actors/process/log.hpp"
#include "actors/process/signal_hub.hpp"
#include "actors/process/stack_dump.hpp"
#include "actors/process/wake_queue.hpp"
#include "actors/supervision/job_outcome.hpp"
#include "actors/trainer/trainer_link.hpp"
#include "transport/memory/wait.hpp"
#include "transport/storage/checkpoint_folder.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

/// How long processes may take to end after the job has, before they are killed.
constexpr std::chrono::milliseconds kGraceFailed{1000};
constexpr std::chrono::milliseconds kGraceEnded{10000};

/// The parts of a running job; destroyed in the reverse of the order in which they were made.
class JobRun {
 public:
  JobRun(const JobRequest& request, JobControl& control)
      : request_(request),
        spec_(request.spec),
        control_(control),
        running_(spec_.num_chips()),
        signals_(request.handles_signals
                     ? std::make_unique<SignalSubscription>(request.chains_signals)
                     : nullptr),
        place_(spec_.is_rescuable() && spec_.keep_for_rescue_s > 0),
        folder_(spec_.storage_path, spec_.name, place_.id()),
        board_(place_.make_board(spec_, folder_.path())),
        memory_(place_.make_memory(spec_.num_chips())),
        log_(JobLog::open({.who = "trainer",
                           .file = folder_.path() + "/trainer.log",
                           .job = place_.id(),
                           .console = request.logs_to_console})),
        log_scope_(log_),
        processes_(request.output ? lines_to(request.output) : nullptr,
                   [this](int worker) { tell_stack(worker); }) {
    if (running_.crowd() > usable_cores()) {
      logger("weft.trainer")
          ->warn("the jobs of this program have {} chips on {} cores: they slow each other down",
                 running_.crowd(), usable_cores());
    }
    logger("weft.transport")
        ->info("chip arenas: {} of {} bytes each, reserved as they are used", spec_.num_chips(),
               memory_.arena_capacity());
    result_.path = folder_.path();
    result_.config_digest = request.loop.config_digest;
    result_.job = {.id = place_.id(),
                   .name = spec_.name,
                   .path = folder_.path(),
                   .num_workers = spec_.num_workers,
                   .mesh = spec_.mesh};
    control_.begin(result_.job);
    board_.trainer().open(ActorKind::trainer, -1, -1, ::getpid());
    board_.trainer().state(ActorState::starting);
    const std::string& checkpoints = spec_.checkpoint.path;
    if (!checkpoints.empty() && spec_.mesh) {
      checkpoint_lock_.emplace(checkpoints,
                               fmt::format("job {} (pid {})", place_.id(), ::getpid()));
      remove_unfinished(posix_file_system(), checkpoints);
    }
    const std::optional<ResumePoint> resume = find_resume_point(spec_);
    assignment_ = assignment_of(spec_, folder_.path());
    if (resume) assignment_.seed = resume->seed;
    assignment_.loop = request.loop;
    assignment_.loop_config = request.loop_config;
    write_run_card(place_, spec_, assignment_, request.fit_number);
    link_ = TrainerLink::start(
        {.spec = spec_,
         .resume = resume,
         .assignment = assignment_,
         .token = place_.token(),
         .any_process_joins = request.command && request.command->is_wrapped(),
         .socket_path = spec_.num_workers == 0 ? "" : place_.socket_path(),
         .on_event = [this](TrainerEvent event) { events_.push(std::move(event)); }},
        memory_, board_);
  }
  ~JobRun() {
    processes_.clear();
    link_.reset();  // while there is a log for its last words
  }

  Result run() {
    each_callback([&](Callback& callback) { callback.on_start(result_.job); });
    std::jthread local_worker;
    try {
      if (!thrown_ && spec_.num_workers == 0) {
        local_runs_ = true;
        local_worker = start_job_thread("weft.loop", [this] { run_local(); });
      } else if (!thrown_) {
        start_processes();
      }
      while (!over()) turn();
    } catch (...) {
      // Or the local worker never ends.
      link_->cancel(Errc::cancelled, "an exception in the trainer's process");
      throw;
    }
    auto& history = result_.metrics_history;
    if (history.size() > kHistoryMax) history.erase(history.begin(), history.end() - kHistoryMax);
    take_outcome();
    on_disk([&] { folder_.write_result(result_); });
    take_outcome();
    if (result_.error) leave_for_rescue(place_, spec_, assignment_, memory_);
    while (const int signal = signals_ ? signals_->take() : 0) result_.signal = signal;
    each_callback([&](Callback& callback) { callback.on_end(result_); });
    if (thrown_) std::rethrow_exception(thrown_);
    return std::move(result_);
  }

 private:
  void run_local() {
    {
      const auto link = link_->local_worker(0);
      run_worker(*link, {.worker = 0, .job_id = place_.id(), .token = place_.token()}, memory_,
                 board_, [this](const Assignment&) { return request_.local; }, {});
    }
    local_runs_ = false;
    local_ended_.wake();
  }

  void start_processes() {
    if (request_.nameless) {
      std::ofstream(place_.folder() + "/fits") << request_.nameless->to_text();
    }
    for (int worker = 0; worker < spec_.num_workers; ++worker) {
      start_process(worker);
    }
  }

  void start_process(int worker) {
    const auto variables = to_variables({.job_id = place_.id(),
                                         .token = place_.token(),
                                         .coordinator_address = link_->address(),
                                         .num_processes = spec_.num_workers,
                                         .process_index = worker,
                                         .job_folder = place_.folder(),
                                         .loop = request_.loop.name,
                                         .loop_object = request_.loop.object,
                                         .loop_build = request_.loop.build,
                                         .tls = spec_.tls},
                                        spec_.mesh);
    link_->process_started(worker, processes_.start(worker, *request_.command, variables));
  }

  bool over() const { return outcome_.has_job_ended() && !local_runs_ && processes_.over(); }

  /// Waits for whatever comes next, and deals with it.
  void turn() {
    std::vector<pollfd> waits;
    for (const int fd : {events_.fd(), control_.commands().fd(), signals_ ? signals_->fd() : -1,
                         local_ended_.fd()}) {
      waits.push_back({.fd = fd, .events = POLLIN, .revents = 0});
    }
    const std::size_t first = waits.size();
    processes_.add_to(waits);
    if (::poll(waits.data(), waits.size(), milliseconds_left()) < 0 && errno != EINTR) {
      fail(Errc::io, "can't watch the workers: poll: {}", std::strerror(errno));
    }
    local_ended_.clear();
    processes_.serve(&waits[first],
                     [this](const ProcessEnded& ended) { link_->process_ended(ended); });
    while (const int signal = signals_ ? signals_->take() : 0) interrupted(signal);
    while (const auto command = control_.commands().pop()) obey(*command);
    if (const auto event = events_.pop()) handle(*event);  // one: signals come in between
    if (kill_at_ && Clock::now() >= *kill_at_) end_of_patience();
  }

  int milliseconds_left() const {
    std::optional<Clock::time_point> next = kill_at_;
    if (const auto due = processes_.deadline()) next = std::min(next.value_or(*due), *due);
    if (!next) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now()).count();
    return static_cast<int>(std::max<decltype(left)>(left, 0));
  }

  void obey(const JobControl::Command& command) {
    const bool stops = command.kind == JobControl::Kind::stop;
    outcome_.on_request(stops ? EndedBy::stop : EndedBy::cancel);
    if (stops) return link_->preempt(command.why);
    fail_here({.code = Errc::cancelled, .message = command.why});
  }

  void take_outcome() {
    result_.error = outcome_.failure();
    result_.ended_by = outcome_.ended_by();
  }

  void interrupted(int signal) {
    result_.signal = signal;
    const std::string got =
        fmt::format("the trainer (pid {}) got SIG{}", ::getpid(), ::sigabbrev_np(signal));
    using Verdict = JobOutcome::SignalVerdict;
    const Verdict verdict = outcome_.on_signal(signal, Clock::now());
    if (verdict == Verdict::ignore) return;
    if (verdict == Verdict::preempt) return link_->preempt(got);
    if (verdict == Verdict::cancel) return fail_here({.code = Errc::cancelled, .message = got});
    processes_.drop_output();
    second_signal_ = signal;
    if (outcome_.has_job_ended() && !kill_at_) leave_if_stuck();
  }

  /// A thread that doesn't come back ends with its process only. Where the program has a handler of
  /// its own, that decides.
  void leave_if_stuck() {
    if (!local_runs_ || second_signal_ == 0) return;
    if (!SignalSubscription::ends_the_program(second_signal_)) return;
    place_.remove();
    SignalSubscription::end_the_program_by(second_signal_);
  }

  /// The job has ended, but not all that ran it.
  void end_of_patience() {
    kill_at_.reset();
    processes_.kill_all();
    // In the background nobody may ever read what is left; a pager in front is waited for.
    if (!signals_ || outcome_.requested_by() != EndedBy::loops) processes_.drop_output();
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
      case TrainerEvent::Kind::started: control_.runs(); break;
      case TrainerEvent::Kind::report: take_report(event); break;
      case TrainerEvent::Kind::kill: processes_.kill(event.worker, event.dump_stack); break;
      case TrainerEvent::Kind::restart: start_again(event.worker); break;
      case TrainerEvent::Kind::ended:
        outcome_.on_job_ended(event.failure);
        result_.failures = event.survived;
        for (const std::string& metrics : event.worker_metrics) {
          result_.worker_metrics.push_back(metrics.empty() ? Metrics()
                                                           : Metrics::from_cbor(metrics));
        }
        // What is named is whole, where all workers save.
        if (!event.whole_checkpoint.empty()) {
          result_.checkpoint = Checkpoint{event.whole_checkpoint};
        }
        kill_at_ = Clock::now() + (event.failure ? kGraceFailed : kGraceEnded);
        break;
    }
  }

  void tell_stack(int worker) const {
    const std::string calls = last_stack(fmt::format("{}/worker-{}.log", folder_.path(), worker));
    if (calls.empty()) return;
    logger("weft.trainer")
        ->warn("worker {}, which hangs, is here, innermost call first:\n{}", worker, calls);
  }

  void start_again(int worker) {
    if (outcome_.has_job_ended() || outcome_.has_failed_here()) return;
    try {
      folder_.require();
      start_process(worker);
    } catch (const Error& e) {
      fail_here({.code = e.code(), .message = e.what(), .worker = worker});
    }
  }

  void take_report(const TrainerEvent& event) {
    const Report& report = event.report;
    result_.metrics = Metrics::from_cbor(report.metrics);
    auto& history = result_.metrics_history;
    if (history.size() == 2 * kHistoryMax)
      history.erase(history.begin(), history.begin() + kHistoryMax);
    history.push_back(result_.metrics);
    control_.reported(result_.metrics);
    if (!report.checkpoint.empty()) result_.checkpoint = Checkpoint{report.checkpoint};
    on_disk([&] {
      folder_.add(result_.metrics);
      if (report.checkpoint.empty()) return;
      folder_.keep_checkpoints(spec_.checkpoint.max_to_keep,
                               event.whole_step.value_or(report.step));
    });
    if (outcome_.has_failed_here()) return;
    each_callback([&](Callback& callback) { callback.on_report(result_.metrics); });
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
  void fail_here(const Failure& failure) {
    if (!outcome_.on_own_failure(failure)) return;
    if (kill_at_) kill_at_ = std::min(*kill_at_, Clock::now() + kGraceFailed);
    link_->cancel(failure.code, failure.message);
  }

  template <typename Call>
  void each_callback(const Call& call) {
    guarded([&] {
      for (const auto& callback : request_.callbacks) call(*callback);
    });
  }

  std::function<void(int, bool, std::string_view)> lines_to(const auto& output) {
    return [this, &output](int worker, bool err, std::string_view line) {
      guarded([&] { output(worker, err, line); });
    };
  }

  /// What a callback throws ends the job and comes out of fit().
  template <typename Call>
  void guarded(const Call& call) {
    try {
      call();
    } catch (...) {
      if (!thrown_) thrown_ = std::current_exception();
      outcome_.on_callback_threw();
      link_->cancel(Errc::loop_failed, "a callback threw an exception");
    }
  }

  const JobRequest& request_;
  const JobSpec& spec_;
  JobControl& control_;
  const SigpipeBlock sigpipe_;
  const RunningJob running_;
  const std::unique_ptr<SignalSubscription> signals_;  // before what has to be removed
  JobPlace place_;
  RunFolder folder_;
  std::optional<CheckpointLock> checkpoint_lock_;
  Board board_;
  JobMemory memory_;
  Assignment assignment_;
  const std::shared_ptr<JobLog> log_;
  const LogScope log_scope_;
  WakeQueue<TrainerEvent> events_;
  std::unique_ptr<TrainerLink> link_;
  WorkerProcesses processes_;
  WakeFd local_ended_;
  std::atomic<bool> local_runs_ = false;
  Result result_;
  JobOutcome outcome_;
  std::exception_ptr thrown_;  ///< by a callback
  int second_signal_ = 0;
  std::optional<Clock::time_point> kill_at_;  ///< once the job has ended, until it has come
};

}  // namespace

Result run_job(const JobRequest& request, JobControl& control,
               const std::function<void()>& started) {
  // Or an exception that nobody catches would end the process before the run is destroyed.
  try {
    JobRun run(request, control);
    if (started) started();
    Result result = run.run();
    note_exit_code(result);
    return result;
  } catch (...) {
    throw;
  }
}

}  // namespace weft
