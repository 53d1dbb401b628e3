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

#include "actors/commands/post_server.hpp"
#include "actors/host/checkpoint_place.hpp"
#include "actors/host/host_run.hpp"
#include "actors/host/left_for_rescue.hpp"
#include "actors/host/step_teller.hpp"
#include "actors/job/job_outcome.hpp"
#include "actors/job/nameless_fit.hpp"
#include "actors/job/resume.hpp"
#include "actors/job/running_jobs.hpp"
#include "actors/launch/launch_variables.hpp"
#include "actors/link/rendezvous.hpp"
#include "actors/process/job_thread.hpp"
#include "actors/process/log.hpp"
#include "actors/process/signal_hub.hpp"
#include "actors/process/wake_queue.hpp"
#include "actors/protocol/whereabouts.hpp"
#include "actors/trainer/callbacks.hpp"
#include "actors/trainer/result_of_events.hpp"
#include "actors/trainer/trainer_link.hpp"
#include "actors/trainer/validations.hpp"
#include "transport/job/post_socket.hpp"
#include "transport/memory/wait.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* kLoopStillRuns =
    "the job has ended, but its loop in this process has not returned: fit() waits for it; a "
    "second signal ends the process";

/// The parts of a running job. They are destroyed in the reverse order of their declarations.
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
        host_(spec_, request.output ? lines_to(request.output) : nullptr, request.logs_to_console),
        outcome_(!request.handles_signals),
        validations_(request.validation, host_.folder.path()) {
    const WorkerPlace own{.job_id = host_.place.id(), .device = spec_.device.kind};
    if (request.sets_variables) set_variables(to_variables(own, spec_.mesh));
    say_resources(spec_, running_.crowd(), usable_cores(), host_.memory.arena_capacity());
    result_.path = host_.folder.path();
    result_.config_digest = request.loop.config_digest;
    result_.job = info_of(spec_, host_.place.id(), host_.folder.path());
    control_.begin(result_.job, spec_.actors);
    host_.board.trainer().open(ActorKind::trainer, -1, -1, ::getpid());
    host_.board.trainer().state(ActorState::starting);
    checkpoints_.emplace(spec_, host_.place.id()).take();
    assignment_ = assignment_of(spec_, host_.folder.path());
    resumes_ = find_resume_points(spec_);
    if (!resumes_.empty()) assignment_.seed = resumes_.front().seed;
    assignment_.loop = request.loop;
    assignment_.loop_config = request.loop_config;
    write_run_card(host_, assignment_, resumes_, request.fit_number, false);
    link_ = TrainerLink::start(
        {.spec = spec_,
         .resumes = resumes_,
         .hosts_look = checkpoints_->leave_mark(assignment_),
         .assignment = assignment_,
         .job_id = host_.place.job().id,
         .token = host_.place.job().token,
         .fits = request.nameless ? request.nameless->to_text() : "",
         .calls = calls_until(request.fit_number),
         .tells_all_reports = request.on_worker_report != nullptr,
         .any_process_joins = request.command && request.command->is_wrapped(),
         .socket_path = spec_.num_workers == 0 ? "" : host_.place.socket_path(),
         .on_event = [this](TrainerEvent event) { events_.push(std::move(event)); },
         .on_answer = [this](const CommandAnswer& answer) { control_.posts().answered(answer); }},
        host_.link, Recorder(host_.board.trainer(), host_.box.link(-1)));
    if (!spec_.place.meeting.empty())
      rendezvous_.emplace(spec_.place, spec_.network, link_->address());
    host_.hangs.on_record([this](bool is_kept) { link_->keep_hang(is_kept); });
    control_.posts().open([link = link_.get()](const CommandPost& post) { link->post(post); });
    post_server_.emplace(post_socket_in(host_.place.folder()), control_.posts());
  }
  ~JobRun() {
    control_.posts().close();
    host_.processes.clear();
    link_.reset();  // destroyed while its last messages can still be logged
  }

  Result run() {
    each_callback("on_start", [&](Callback& callback) { callback.on_start(result_.job); });
    std::jthread local_worker;
    try {
      if (!thrown_ && control_.phase() != Job::Phase::stopping) {
        if (spec_.num_workers > 0) start_processes();
        if (spec_.num_workers == 0) local_worker = start_local();
      }
      while (!over()) turn();
      tell_validations();
    } catch (...) {
      // The cancellation ends the local worker, which would otherwise run forever.
      link_->cancel(Errc::cancelled, "an exception in the trainer's process");
      throw;
    }
    take_outcome();
    result_.validations = validations_.all();
    or_fail(-1, [&] { host_.folder.write_result(result_, step_); });
    take_outcome();
    if (result_.error) leave_for_rescue(host_, assignment_.checkpoint.path, false);
    while (const int signal = signals_ ? signals_->take() : 0) result_.signal = signal;
    if (result_.error && !result_.cancelled() && !thrown_) {
      each_callback("on_failure", [&](Callback& callback) { callback.on_failure(*result_.error); });
    }
    if (const auto step = steps_.last(step_)) call_back("on_step", &Callback::on_step, *step);
    each_callback("on_end", [&](Callback& callback) { callback.on_end(result_); });
    if (thrown_) std::rethrow_exception(thrown_);
    return std::move(result_);
  }

 private:
  std::jthread start_local() {
    local_runs_ = true;
    outcome_.on_local_loop(true);
    return start_job_thread("loop", [this] { run_local(); });
  }

  void run_local() {
    {
      const auto link = link_->local_worker(0, link_recorder(host_.board, host_.box, 0));
      run_worker(*link, {.worker = 0, .job_id = host_.place.id(), .token = host_.place.job().token},
                 host_.memory, host_.board, host_.box,
                 [this](const Assignment&) { return request_.local; }, {});
    }
    local_runs_ = false;
    local_ended_.wake();
  }

  void start_processes() {
    const auto& nameless = request_.nameless;
    if (nameless) std::ofstream(host_.place.folder() + "/fits") << nameless->to_text();
    for (int worker = 0; worker < spec_.workers_per_host(); ++worker) start_process(worker);
  }

  void start_process(int worker) {
    link_->process_started(
        worker, host_.start_process(worker, *request_.command, request_.loop, link_->address()));
  }

  bool over() const { return outcome_.is_over() && host_.processes.over() && validations_.over(); }

  /// Waits for the next event, and handles it.
  void turn() {
    std::vector<pollfd> waits;
    for (const int fd : {events_.fd(), control_.requests().fd(), signals_ ? signals_->fd() : -1,
                         local_ended_.fd(), validations_.fd()}) {
      waits.push_back({.fd = fd, .events = POLLIN, .revents = 0});
    }
    const std::size_t first = waits.size();
    host_.processes.add_to(waits);
    const std::size_t first_post = waits.size();
    post_server_->add_to(waits);
    if (::poll(waits.data(), waits.size(), milliseconds_left()) < 0 && errno != EINTR) {
      fail(Errc::io, "can't watch the workers: poll: {}", std::strerror(errno));
    }
    local_ended_.clear();
    outcome_.on_local_loop(local_runs_);
    host_.processes.serve(&waits[first],
                          [this](const ProcessEnded& ended) { link_->process_ended(ended); });
    post_server_->serve(&waits[first_post]);
    while (const int signal = signals_ ? signals_->take() : 0) interrupted(signal);
    while (const auto request = control_.requests().pop()) {
      const EndedBy by = request->kind == JobControl::Kind::stop ? EndedBy::stop : EndedBy::cancel;
      carry_out(outcome_.on_request(by, request->why, Clock::now()));
    }
    // Only one event is handled per turn, so that signals are handled between events.
    if (const auto event = events_.pop()) handle(*event);
    tell_validations();
    carry_out(outcome_.on_time(Clock::now()));
    const auto step = steps_.look(Clock::now());
    if (step) call_back("on_step", &Callback::on_step, *step);
    if (!host_.times.on_time(Clock::now()) || !outcome_.goes_on()) return;
    if (const auto hang = host_.hangs.look()) call_back("on_hang", &Callback::on_hang, *hang);
  }

  int milliseconds_left() const {
    Clock::time_point next = host_.times.deadline();
    for (const auto& due : {outcome_.deadline(), host_.processes.deadline(), steps_.deadline()}) {
      if (due) next = std::min(next, *due);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now());
    return static_cast<int>(std::max(left, std::chrono::milliseconds(0)).count());
  }

  void take_outcome() {
    result_.error = with_worker_apart(outcome_.failure(), host_.link.rows());
    result_.ended_by = outcome_.ended_by();
  }

  void interrupted(int signal) {
    result_.signal = signal;
    carry_out(outcome_.on_signal(
        signal, fmt::format("the trainer (pid {}) got SIG{}", ::getpid(), ::sigabbrev_np(signal)),
        Clock::now()));
  }

  void carry_out(const JobOutcome::Actions& actions) {
    for (const auto& action : actions) {
      if (std::holds_alternative<JobOutcome::KillProcesses>(action)) host_.hangs.keep_last_sight();
      std::visit(
          Overloaded{
              [&](const JobOutcome::Preempt& preempt) { link_->preempt(preempt.why); },
              [&](const JobOutcome::Cancel& cancel) { link_->cancel(cancel.code, cancel.why); },
              [&](const JobOutcome::KillProcesses&) { host_.processes.kill_all(); },
              [&](const JobOutcome::DropOutput&) { host_.processes.drop_output(); },
              [&](const JobOutcome::EndProgram& end) {
                if (!SignalSubscription::ends_the_program(end.signal)) return;
                host_.place.remove();
                SignalSubscription::end_the_program_by(end.signal);
              },
              [&](const JobOutcome::WarnOfLoop&) { logger("weft.trainer")->warn(kLoopStillRuns); },
          },
          action);
    }
  }

  void handle(const TrainerEvent& event) {
    std::visit(
        Overloaded{
            [&](const trainer_event::Started& started) {
              if (!spec_.recovery.recovers()) rendezvous_.reset();  // all hosts have joined
              host_.times.tell();
              control_.runs();
              if (started.generation == 1) return begin_at(started);
              call_back("on_recovered", &Callback::on_recovered, started.step);
            },
            [&](const trainer_event::Lost& lost) {
              call_back("on_failure", &Callback::on_failure, lost.failure);
            },
            [&](const trainer_event::Reported& reported) { take_report(reported); },
            [&](const trainer_event::Saved& saved) {
              validations_.add({saved.path}, saved.step);
              call_back("on_checkpoint", &Callback::on_checkpoint, Checkpoint{saved.path},
                        saved.step);
            },
            [&](const action::Kill& kill) { host_.processes.kill(kill.worker, kill.dumps_stack); },
            [&](const action::Launch& launch) { start_again(launch.worker); },
            [&](const trainer_event::Ended& ended) { take_end(ended); },
        },
        event);
  }

  /// Notes the checkpoint with which the job begins: an earlier one if a host lacks later ones.
  void begin_at(const trainer_event::Started& started) {
    steps_.begin(started.step);
    if (keep_only(started.step, resumes_)) assignment_.seed = resumes_.front().seed;
    if (spec_.place.count == 1) return;
    write_run_card(host_, assignment_, resumes_, request_.fit_number, started.has_copies);
  }

  void take_end(const trainer_event::Ended& ended) {
    outcome_.on_job_ended(ended.failure, Clock::now());
    if (ended.failure) validations_.drop_waiting();
    step_ = ended.step;
    add_to(result_, ended);
    result_.best_checkpoint = find_best_checkpoint(assignment_.checkpoint);
  }

  void start_again(int worker) {
    if (!outcome_.goes_on()) return;
    or_fail(worker, [&] {
      host_.folder.require();
      start_process(worker);
    });
  }

  void take_report(const trainer_event::Reported& reported) {
    const int worker = reported.report.worker;
    const Metrics metrics = Metrics::from_cbor(reported.report.metrics);
    if (worker == 0) take_report_of_run(reported, metrics);
    if (!request_.on_worker_report || !outcome_.may_call_back()) return;
    const InsideScope inside(host_.board.trainer(), "run.on_worker_report", ::gettid());
    guarded([&] { request_.on_worker_report(worker, metrics); });
  }

  void take_report_of_run(const trainer_event::Reported& reported, const Metrics& metrics) {
    const Report& report = reported.report;
    add_to(result_, report, metrics);
    control_.reported(metrics);
    or_fail(-1, [&] {
      host_.folder.add(metrics);
      if (report.checkpoint.empty()) return;
      host_.folder.keep_checkpoints(spec_.checkpoint.max_to_keep,
                                    reported.whole_step.value_or(report.step));
    });
    call_back("on_report", &Callback::on_report, metrics);
    if (spec_.ends_on_nan) or_fail(0, [&] { require_finite(report, metrics); });
  }

  void tell_validations() {
    while (const auto validation = validations_.pop()) {
      call_back("on_validation", &Callback::on_validation, *validation);
    }
  }

  /// Runs `call`, and ends the job if it can't write to the run folder or start a worker.
  template <typename Call>
  void or_fail(int worker, const Call& call) {
    try {
      call();
    } catch (const Error& e) {
      Failure failure{.code = e.code(), .message = e.what(), .worker = worker};
      carry_out(outcome_.on_own_failure(std::move(failure), Clock::now()));
    }
  }

  /// Calls this function of every callback, unless a callback or the run folder has already failed.
  template <typename... Args>
  void call_back(const char* name, void (Callback::*function)(Args...), const auto&... args) {
    if (!outcome_.may_call_back()) return;
    each_callback(name, [&](Callback& callback) { (callback.*function)(args...); });
  }

  template <typename Call>
  void each_callback(const char* function, const Call& call) {
    guarded([&] { call_each(request_.callbacks, host_.board.trainer(), function, call); });
  }

  std::function<void(int, bool, std::string_view)> lines_to(const auto& output) {
    return [this, &output](int worker, bool err, std::string_view line) {
      const InsideScope inside(host_.board.trainer(), "the program's run.output", ::gettid());
      guarded([&] { output(worker, err, line); });
    };
  }

  /// Runs `call`, and ends the job if a callback throws. fit() then throws the same exception.
  template <typename Call>
  void guarded(const Call& call) {
    try {
      call();
    } catch (...) {
      if (!thrown_) thrown_ = std::current_exception();
      carry_out(outcome_.on_callback_threw());
    }
  }

  const JobRequest& request_;
  const JobSpec& spec_;
  JobControl& control_;
  const SigpipeBlock sigpipe_;
  const RunningJob running_;
  // It is made first and destroyed last, so that signals are handled while the other members exist.
  const std::unique_ptr<SignalSubscription> signals_;
  std::optional<CheckpointPlace> checkpoints_;
  HostRun host_;
  Assignment assignment_;
  std::vector<ResumePoint> resumes_;  ///< the checkpoints from which the job may continue
  WakeQueue<TrainerEvent> events_;
  std::unique_ptr<TrainerLink> link_;
  std::optional<Rendezvous> rendezvous_;
  std::optional<PostServer> post_server_;
  WakeFd local_ended_;
  std::atomic<bool> local_runs_ = false;  ///< the loop runs on a thread of this process
  Result result_;
  std::uint64_t step_ = 0;  ///< the number of completed steps when the job ended
  StepTeller steps_{host_.board, !request_.callbacks.empty()};
  JobOutcome outcome_;
  std::exception_ptr thrown_;  ///< the exception of a callback
  Validations validations_;
};

}  // namespace

Result run_job(const JobRequest& request, JobControl& control,
               const std::function<void()>& started) {
  // Without the catch, an unhandled exception would end the process before the run is destroyed.
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
