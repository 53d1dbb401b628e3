#include "actors/worker/worker_session.hpp"

#include <unistd.h>

#include <cstdlib>
#include <mutex>

#include <weft/ops/elementwise.hpp>

#include "actors/process/failure.hpp"
#include "actors/process/job_thread.hpp"
#include "actors/process/log.hpp"
#include "actors/process/throw_places.hpp"
#include "actors/protocol/first_plan.hpp"
#include "actors/worker/state_passing.hpp"
#include "actors/worker/worker_context.hpp"
#include "actors/worker/worker_places.hpp"
#include "data/files/plain_file.hpp"
#include "spmd/tensor/step_watch.hpp"
#include "transport/collectives/communicator.hpp"

namespace weft {
namespace {

/// Returns the number of workers that store to the same folder. Their numbers are consecutive.
int workers_of_folder(const Assignment& assignment, const Start& start) {
  return assignment.num_workers / (start.folders.empty() ? 1 : assignment.num_hosts);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}
bool is_on(const char* name) {
  const std::string value = variable(name);
  return !value.empty() && value != "0";
}

}  // namespace

void StageClock::ended(const char* stage) {
  const auto now = std::chrono::steady_clock::now();
  const double took = std::chrono::duration<double, std::milli>(now - begin_).count();
  begin_ = now;
  logger("weft.worker")->debug("start-up: {} took {:.2f} ms", stage, took);
  stages_.push_back({stage, took});
}

bool owns_cores() { return is_on("WEFT_OWN_CORES"); }

std::string place_of(const std::exception_ptr& thrown, Errc code) {
  const bool is_of_others =
      code == Errc::cancelled || code == Errc::peer_lost || code == Errc::timeout;
  return is_of_others ? "" : thrown_at(thrown);
}

WorkerSession::WorkerSession(WorkerLink& link, const WorkerIdentity& identity,
                             const Assignment& assignment, const Start& start, JobMemory& memory,
                             Board& board, BlackBoxWriter& box)
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
      resumed_(start.resume.empty() ? nullptr
                                    : std::make_shared<ResumedState>(StateFile::open(start.resume),
                                                                     assignment.resume_partial)),
      own_memory_(
          has_mesh()
              ? std::nullopt
              : std::optional(JobMemory::anonymous(
                    {.job = job_id_, .num_chips = 1, .arena_capacity = kind_.arena_capacity}))),
      wires_({.job_id = job_id_,
              .worker = worker_,
              .generation = start.generation,
              .place = identity.place},
             mesh_, local_positions(), assignment, memory, link),
      state_source_(
          start.resume.empty() && start.checkpoint.empty()
              ? pass_state(start, assignment, mesh_, local_positions(), memory, wires_, recorder_)
              : StateSource::checkpoint),
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
                .state_source = state_source_,
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
      checkpoints_(
          runtime_, loaders_, link, recorder_,
          {.worker = worker_,
           .part = worker_ % workers_of_folder(assignment, start),
           .num_parts = workers_of_folder(assignment, start),
           .is_per_host = !start.folders.empty(),
           .job_id = job_id_,
           .seed = assignment.seed,
           .config = assignment.checkpoint,
           .resumed_from = start.resume,
           .saved_step = start.saved_step == 0 ? std::nullopt : std::optional(start.saved_step)}) {
  resumed_.reset();  // the runtime still uses it during the first step
}

void WorkerSession::run(const BoundLoop& loop, ReportLog& reports, StageClock& stages) {
  stages.ended("devices");
  link_.permits().begin_step(runtime_.step());
  // The name is set only now, because threads inherit it. The process's first thread keeps its
  // name.
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

void WorkerSession::leave_collectives(JobMemory& memory) const {
  leave_loop(memory, mesh_, local_positions());
}

std::string WorkerSession::last_site() const { return to_string(runtime_.last_site()); }

std::vector<int> WorkerSession::local_positions() const {
  return positions_of(assignment_, mesh_, worker_);
}

std::vector<std::unique_ptr<DeviceLink>> WorkerSession::start_devices(JobMemory& memory) {
  const WaitPolicy policy = policy_of(assignment_, mesh_, owns_cores());
  static std::once_flag said;
  std::call_once(said, [this] {
    if (const auto text = kind_.limitation(); !text.empty()) logger("weft.device")->warn(text);
  });
  const CompiledStore store(path_variable("WEFT_COMPILE_CACHE"), [](const std::string& line) {
    logger("weft.device")->debug("{}", line);
  });
  std::vector<std::unique_ptr<DeviceLink>> devices;
  for (const int position : local_positions()) {
    const int local_index = static_cast<int>(devices.size());
    const int chip =
        has_mesh() ? mesh_.device_at(position) : worker_ * assignment_.chips_per_worker;
    const Recorder recorder(board_.device(chip), box_.chip(chip, worker_), box_.ledger(chip));
    recorder.board.open(ActorKind::device, worker_, chip, ::getpid());
    devices.push_back(
        link_.start_device(kind_.make({memory, mesh_, position, recorder, policy, local_index,
                                       wires_.tier(local_index, recorder, policy), store}),
                           recorder, chip, [this](std::exception_ptr failure, std::uint64_t step) {
                             device_failed(std::move(failure), step);
                           }));
  }
  return devices;
}
/// Reports the failure at once, on the device's thread, because the loop may be busy for a long
/// time.
void WorkerSession::device_failed(const std::exception_ptr& failure, std::uint64_t step) {
  const Thrown text = describe(failure);
  link_.loop_ended({.worker = worker_,
                    .generation = start_.generation,
                    .step = step == ~std::uint64_t{0} ? start_.step : step,  // before any run
                    .runs = 0,
                    .error = static_cast<std::uint8_t>(text.code),
                    .message = text.message,
                    .thrown_at = place_of(failure, text.code)});
}

}  // namespace weft
