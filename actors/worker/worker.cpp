#include "actors/worker/worker.hpp"

#include <unistd.h>

#include <chrono>
#include <optional>

#include <weft/train/train_context.hpp>

#include "actors/data/report_log.hpp"
#include "actors/process/crash_dump.hpp"
#include "actors/process/failure.hpp"
#include "actors/process/log.hpp"
#include "actors/process/stack_dump.hpp"
#include "actors/process/throw_places.hpp"
#include "actors/worker/term_watch.hpp"
#include "actors/worker/worker_places.hpp"
#include "actors/worker/worker_session.hpp"
#include "transport/collectives/check_members.hpp"
#include "transport/job/crash_format.hpp"
#include "transport/state/commits.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

/// The time that a worker tries to reach the trainer. It can be short, because the trainer listens
/// before it starts any worker.
constexpr std::chrono::seconds kConnectPatience{30};

/// Runs the loop in each generation, until the trainer tells that the job has ended.
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
        Start start = link_.permits().wait_started(generation);
        generation = ended.generation = start.generation;
        take_own_storage(start);
        stages_.ended("others joined");
        run_generation(start, ended);
      } catch (...) {
        note(ended, std::current_exception());
      }
      const Verdict verdict = tell_end(ended);
      if (verdict != Verdict::unwinds) return verdict == Verdict::leaves_well;
      link_.unwound(generation + 1, common_step(memory_));
    }
  }

 private:
  using Verdict = WorkerState::Verdict;

  /// Joins the job. If the trainer refuses this process, the process must leave the job as it is,
  /// because another process may be the worker.
  bool join() {
    try {
      assignment_ = link_.join({.worker = identity_.worker,
                                .pid = ::getpid(),
                                .token = identity_.token,
                                .committed = common_step(memory_),
                                .memory_id = board_.header().job});
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

  /// If each host stores its own checkpoints, replaces host 0's paths by this host's paths.
  void take_own_storage(Start& start) {
    assignment_.seed = start.seed;
    if (start.folders.empty()) return;
    const int host = identity_.worker / (assignment_.num_workers / assignment_.num_hosts);
    assignment_.checkpoint.path = start.folders.at(static_cast<std::size_t>(host));
    if (start.resume.empty()) return;
    const std::string& copy = start.copies.at(static_cast<std::size_t>(host));
    if (copy.empty()) {
      fail(Errc::not_found,
           "host {} has no copy of {} of host 0, from which the job continues: copy it to {} on "
           "this host",
           host, start.resume, assignment_.checkpoint.path);
    }
    start.resume = copy;
  }

  void run_generation(const Start& start, LoopEnded& ended) {
    recorder_.board.error({});  // the job has survived the loss that the row shows
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
    // The rows are opened first, so that readers of the board see for whom each worker waits.
    for (const int position : positions) {
      const int chip = mesh.device_at(position);
      board_.device(chip).open(ActorKind::device, identity_.worker, chip, ::getpid());
    }
    check_members(memory_, mesh, positions, board_, policy_of(assignment_, mesh, owns_cores()));
    stages_.ended("members checked");
  }

  void note(LoopEnded& ended, const std::exception_ptr& thrown) {
    const Thrown text = describe(thrown);
    ended.error = static_cast<std::uint8_t>(text.code);
    ended.message = text.message;
    ended.thrown_at = place_of(thrown, text.code);
  }

  /// Tells the trainer how the loop ended, unless the worker must leave the generation. Then waits
  /// for the trainer's verdict.
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
    JobMemory memory = JobMemory::open(environment.memory());
    memory.hide_arenas_from_children();
    Board board = Board::open(environment.memory(), false);
    const int worker = environment.process_index;
    BlackBoxWriter box = BlackBoxWriter::open(environment.memory());
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
                                  .report_log = environment.report_log_path(),
                                  .place = environment.place},
                                 memory, board, box, resolve, clock.take());
    preemption.reset();  // destroyed before the link, which it uses
    link.reset();
    set_process_log(nullptr);
    return good ? 0 : 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "weft worker {}: {}\n", environment.process_index, e.what());
    return 1;
  }
}

}  // namespace weft
