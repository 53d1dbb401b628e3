#include "actors/worker/worker.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <optional>

#include <weft/ops/elementwise.hpp>
#include <weft/train/train_context.hpp>

#include "actors/data/report_log.hpp"
#include "actors/process/crash_dump.hpp"
#include "actors/process/failure.hpp"
#include "actors/process/job_thread.hpp"
#include "actors/process/log.hpp"
#include "actors/process/stack_dump.hpp"
#include "actors/process/throw_places.hpp"
#include "actors/protocol/first_plan.hpp"
#include "actors/runtime/worker_runtime.hpp"
#include "actors/worker/term_watch.hpp"
#include "actors/worker/worker_context.hpp"
#include "actors/worker/worker_places.hpp"
#include "chips/registry/registry.hpp"
#include "data/files/plain_file.hpp"
#include "spmd/tensor/step_watch.hpp"
#include "transport/collectives/check_members.hpp"
#include "transport/collectives/communicator.hpp"
#include "transport/job/crash_format.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a worker tries to reach the trainer, which listens before it starts any worker.
constexpr std::chrono::seconds kConnectPatience{30};

/// Measures the stages of the start-up.
class StageClock {
 public:
  explicit StageClock(std::vector<BootstrapStage> stages) : stages_(std::move(stages)) {}
  void ended(const char* stage) {
    const auto now = Clock::now();
    const double took = std::chrono::duration<double, std::milli>(now - begin_).count();
    begin_ = now;
    logger("weft.worker")->debug("start-up: {} took {:.2f} ms", stage, took);
    stages_.push_back({stage, took});
  }
  std::vector<BootstrapStage> take() { return std::move(stages_); }

 private:
  std::vector<BootstrapStage> stages_;
  Clock::time_point begin_ = Clock::now();
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}
bool is_on(const char* name) {
  const std::string value = variable(name);
  return !value.empty() && value != "0";
}

/// Returns where the exception was thrown. Finding the place takes tens of milliseconds, so this
/// skips the errors that weft throws in all other workers when one worker is lost.
std::string place_of(const std::exception_ptr& thrown, Errc code) {
  const bool is_of_others =
      code == Errc::cancelled || code == Errc::peer_lost || code == Errc::timeout;
  return is_of_others ? "" : thrown_at(thrown);
}

/// The loop of one generation and its objects. Its end ends all use of the job's memory.
class WorkerSession {
 public:
  WorkerSession(WorkerLink& link, const WorkerIdentity& identity, const Assignment& assignment,
                const Start& start, JobMemory& memory, Board& board, BlackBoxWriter& box)
      : link_(link),
        worker_(identity.worker),
        job_id_(identity.job_id),
        assignment_(assignment),
        kind_(chip_kind(assignment.device)),
        start_(start),
        board_(board),
        box_(box),
        recorder_(board.worker(worker_), box.loop(worker_)),
        mesh_(memory_mesh_of(assignment)),
        resumed_(start.resume.empty()
                     ? nullptr
                     : std::make_shared<ResumedState>(StateFile::open(start.resume),
                                                      assignment.resume_partial)),
        own_memory_(has_mesh()
                        ? std::nullopt
                        : std::optional(JobMemory::anonymous({.job = job_id_, .num_chips = 1}))),
        runtime_(mesh_of(assignment), mesh_, local_positions(), start_devices(memory_of(memory)),
                 memory_of(memory), link, recorder_,
                 {.target = *kind_.target,
                  .worker = worker_,
                  .run_dir = assignment.run_dir,
                  .has_mesh = has_mesh(),
                  .dump_dir = path_variable("WEFT_DUMP_TO"),
                  .plan_dir = path_variable("WEFT_COMPILE_CACHE"),
                  .debug = debug_level(),
                  .generation = start.generation,
                  .resume_step = start.step,
                  .keeps_state = assignment.keeps_state,
                  .resume_from = resumed_,
                  .check_replicas_every = assignment.check_replicas_every,
                  .check_data = has_mesh() && assignment.num_workers > 1
                                    ? data_checks(variable("WEFT_CHECK_DATA"))
                                    : DataChecks::never,
                  .detect_anomaly = is_on("WEFT_DETECT_ANOMALY"),
                  .plan_folder = plan_folder(),
                  .num_workers = assignment.num_workers}),
        loaders_(runtime_, recorder_, assignment.seed,
                 resumed_ ? resumed_->file().checkpoint()->loaders : std::vector<StoredLoader>()),
        checkpoints_(runtime_, loaders_, link, recorder_,
                     {.worker = worker_,
                      .num_workers = assignment.num_workers,
                      .job_id = job_id_,
                      .seed = assignment.seed,
                      .config = assignment.checkpoint,
                      .resumed_from = start.resume,
                      .saved_step =
                          start.saved_step == 0 ? std::nullopt : std::optional(start.saved_step)}) {
    resumed_.reset();  // the runtime has it until the first step has ended
  }

  void run(const BoundLoop& loop, ReportLog& reports, StageClock& stages) {
    stages.ended("devices");
    link_.permits().begin_step(runtime_.step());
    // The name is set late, because threads inherit it. The process's first thread keeps its own.
    if (::gettid() != ::getpid()) name_this_thread("loop");
    recorder_.state(ActorState::user_code);
    manual_seed(assignment_.seed);
    RuntimeScope runtime_scope(runtime_, assignment_.is_eager);
    WorkerContext context(worker_, job_id_, assignment_, start_, link_, runtime_, checkpoints_,
                          loaders_, reports, stages.take());
    const ContextScope context_scope(context);
    try {
      returned_ = returned_bytes(loop(context));
    } catch (const Preempted&) {
      left_ = true;
    }
    runtime_scope.finish();
    loaders_.require_counted();
    if (!left_) warn_of_unrun();
    runtime_.drain();
    checkpoints_.wait(true);
    context.publishers().finish();
  }

  std::uint64_t steps() const { return runtime_.step(); }
  std::uint64_t runs() const { return runtime_.runs(); }
  bool left() const { return left_; }
  const std::string& returned() const { return returned_; }
  bool has_mesh() const { return !assignment_.mesh_shape.empty(); }
  void leave_collectives(JobMemory& memory) { leave_loop(memory, mesh_, local_positions()); }
  std::string last_site() const { return to_string(runtime_.last_site()); }

 private:
  JobMemory& memory_of(JobMemory& job) { return own_memory_ ? *own_memory_ : job; }
  std::vector<int> local_positions() const { return positions_of(assignment_, mesh_, worker_); }
  std::vector<std::unique_ptr<DeviceLink>> start_devices(JobMemory& memory) {
    const WaitPolicy policy = policy_of(assignment_, mesh_, is_on("WEFT_OWN_CORES"));
    static std::once_flag said;
    std::call_once(said, [this] {
      if (const auto text = kind_.limitation(); !text.empty()) logger("weft.device")->warn(text);
    });
    std::vector<std::unique_ptr<DeviceLink>> devices;
    for (const int position : local_positions()) {
      const int local_index = static_cast<int>(devices.size());
      const int chip =
          has_mesh() ? mesh_.device_at(position) : worker_ * assignment_.chips_per_worker;
      const Recorder recorder(board_.device(chip), box_.chip(chip, worker_), box_.ledger(chip));
      recorder.board.open(ActorKind::device, worker_, chip, ::getpid());
      devices.push_back(link_.start_device(
          kind_.make({memory, mesh_, position, recorder, policy, local_index}), recorder, chip,
          [this](std::exception_ptr failure, std::uint64_t step) {
            device_failed(std::move(failure), step);
          }));
    }
    return devices;
  }
  /// Reports the failure at once, from the device's thread, because the loop may be busy for a long
  /// time.
  void device_failed(std::exception_ptr failure, std::uint64_t step) {
    const Thrown text = describe(failure);
    link_.loop_ended({.worker = worker_,
                      .generation = start_.generation,
                      .step = step == ~std::uint64_t{0} ? start_.step : step,  // before any run
                      .runs = 0,
                      .error = static_cast<std::uint8_t>(text.code),
                      .message = text.message,
                      .thrown_at = place_of(failure, text.code)});
  }

  WorkerLink& link_;
  const int worker_;
  const std::string job_id_;
  const Assignment assignment_;
  const ChipKind& kind_;
  const Start start_;
  Board& board_;
  BlackBoxWriter& box_;
  const Recorder recorder_;
  const Mesh mesh_;                        // as the memory has it
  std::shared_ptr<ResumedState> resumed_;  // null unless it resumes a checkpoint
  std::optional<JobMemory> own_memory_;
  WorkerRuntime runtime_;
  JobLoaders loaders_;
  JobCheckpoints checkpoints_;
  bool left_ = false;
  std::string returned_;
};

/// Runs the loop in one generation after another, until the trainer says that the job has ended.
class WorkerLife {
 public:
  WorkerLife(WorkerLink& link, const WorkerIdentity& identity, JobMemory& memory, Board& board,
             BlackBoxWriter& box, const ResolveLoop& resolve, std::vector<BootstrapStage> stages)
      : link_(link),
        identity_(identity),
        memory_(memory),
        board_(board),
        box_(box),
        resolve_(resolve),
        recorder_(board.worker(identity.worker), box.loop(identity.worker)),
        stages_(std::move(stages)) {}

  bool run() {
    if (!join()) return false;
    LoopEnded ended{.worker = identity_.worker, .generation = 0};
    try {
      loop_ = resolve_(assignment_);
    } catch (...) {
      note(ended, std::current_exception());
      tell_end(ended);
      return false;
    }
    for (std::uint64_t generation = 0;;) {
      ended = {.worker = identity_.worker};
      try {
        const Start start = link_.permits().wait_started(generation);
        generation = ended.generation = start.generation;
        stages_.ended("others joined");
        run_generation(start, ended);
      } catch (...) {
        note(ended, std::current_exception());
      }
      const Verdict verdict = tell_end(ended);
      if (verdict != Verdict::unwinds) return verdict == Verdict::leaves_well;
      link_.unwound(generation + 1);
    }
  }

 private:
  using Verdict = WorkerState::Verdict;

  /// Joins the job. A process that the trainer refuses changes nothing of the job, because another
  /// process may be the worker.
  bool join() {
    try {
      assignment_ =
          link_.join({.worker = identity_.worker, .pid = ::getpid(), .token = identity_.token});
    } catch (const std::exception& e) {
      logger("weft.worker")->info("{}", e.what());  // the trainer has logged the reason, or is gone
      return false;
    }
    link_.permits().set_timeout(std::chrono::milliseconds(assignment_.timeout_ms));
    stages_.ended("join");
    recorder_.board.open(ActorKind::worker, identity_.worker, -1, ::getpid());
    recorder_.state(ActorState::idle);
    return true;
  }

  void run_generation(const Start& start, LoopEnded& ended) {
    recorder_.board.error({});  // the job has survived the loss that the row reported
    ReportLog reports(assignment_.recovers && identity_.worker == 0 ? identity_.report_log : "");
    for (const Report& report : reports.after(start.reports)) link_.report(report);
    meet_peers();
    WorkerSession session(link_, identity_, assignment_, start, memory_, board_, box_);
    try {
      session.run(loop_, reports, stages_);
      if (!session.left() && session.has_mesh()) session.leave_collectives(memory_);
    } catch (...) {
      note(ended, std::current_exception());
    }
    ended.step = session.steps();
    ended.runs = session.runs();
    ended.last = session.last_site();
    ended.left = session.left();
    ended.returned = session.returned();
  }

  void meet_peers() {
    if (assignment_.mesh_shape.empty()) return;
    const Mesh mesh = memory_mesh_of(assignment_);
    const std::vector<int> positions = positions_of(assignment_, mesh, identity_.worker);
    // The rows are opened first, so that readers of the board see which worker waits for which.
    for (const int position : positions) {
      const int chip = mesh.device_at(position);
      board_.device(chip).open(ActorKind::device, identity_.worker, chip, ::getpid());
    }
    check_members(memory_, mesh, positions, board_,
                  policy_of(assignment_, mesh, is_on("WEFT_OWN_CORES")));
    stages_.ended("members checked");
  }

  void note(LoopEnded& ended, const std::exception_ptr& thrown) {
    const Thrown text = describe(thrown);
    ended.error = static_cast<std::uint8_t>(text.code);
    ended.message = text.message;
    ended.thrown_at = place_of(thrown, text.code);
  }

  /// Tells the trainer how the loop ended, unless the worker must leave the generation. Waits for
  /// the trainer's answer.
  Verdict tell_end(const LoopEnded& how) {
    const std::optional<LoopEnded> ended = link_.permits().loop_ended(how);
    if (!ended) {
      recorder_.state(ActorState::idle);
      return Verdict::unwinds;
    }
    const bool good = ended->error == 0;
    const std::string how_it_failed = with_throw(ended->message, ended->thrown_at);
    if (!good) recorder_.error(how_it_failed);
    recorder_.state(good ? ActorState::ended : ActorState::failed);
    link_.loop_ended(*ended);
    logger("weft.worker")->info("loop ended: {}", good ? "well" : how_it_failed);
    return link_.permits().wait_verdict();
  }

  WorkerLink& link_;
  const WorkerIdentity& identity_;
  JobMemory& memory_;
  Board& board_;
  BlackBoxWriter& box_;
  const ResolveLoop& resolve_;
  BoundLoop loop_;
  const Recorder recorder_;
  StageClock stages_;
  Assignment assignment_;
};

}  // namespace

LinkRecorder link_recorder(const Board& board, BlackBoxWriter& box, int worker) {
  return {.actor = {board.worker(worker), box.link(worker)}, .threads = box.shared(worker)};
}

bool run_worker(WorkerLink& link, const WorkerIdentity& identity, JobMemory& memory, Board& board,
                BlackBoxWriter& box, const ResolveLoop& resolve,
                std::vector<BootstrapStage> stages) {
  const ThrowsKept throws;
  return WorkerLife(link, identity, memory, board, box, resolve, std::move(stages)).run();
}

int run_worker_process(const WorkerEnvironment& environment, const ResolveLoop& resolve) {
  try {
    StageClock clock({});
    JobMemory memory = JobMemory::open(environment.job_id);
    memory.hide_arenas_from_children();
    Board board = Board::open(environment.job_id, false);
    const int worker = environment.process_index;
    BlackBoxWriter box = BlackBoxWriter::open(environment.job_id);
    const std::string log = fmt::format("{}/worker-{}.log", board.header().run_dir, worker);
    set_process_log(JobLog::open({.who = fmt::format("worker {}", worker),
                                  .file = log,
                                  .job = environment.job_id,
                                  .worker = worker,
                                  .events = box.shared(worker)}));
    dump_stack_on_sigquit(log);
    keep_crashes(crash_file(board.header().run_dir, worker), board.worker(worker));
    clock.ended("map");
    auto link =
        WorkerLink::connect(environment, kConnectPatience, link_recorder(board, box, worker));
    clock.ended("connect");
    std::optional<TermWatch> preemption(std::in_place, [&link, worker] {
      link->preempt(fmt::format("worker {} (pid {}) got SIGTERM", worker, ::getpid()));
    });
    const bool good = run_worker(*link,
                                 {.worker = worker,
                                  .job_id = environment.job_id,
                                  .token = environment.token,
                                  .report_log = environment.report_log_path()},
                                 memory, board, box, resolve, clock.take());
    preemption.reset();  // before the link, which it uses
    link.reset();
    set_process_log(nullptr);
    return good ? 0 : 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "weft worker {}: {}\n", environment.process_index, e.what());
    return 1;
  }
}

}  // namespace weft
