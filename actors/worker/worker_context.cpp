#include "actors/worker/worker_context.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/data/run_folder.hpp"
#include "actors/process/log.hpp"
#include "data/files/plain_file.hpp"
#include "spmd/tensor/node.hpp"

namespace weft {
namespace {

/// The limit on a report's bytes. It is small because the trainer keeps all reports in memory, as
/// history.
constexpr std::size_t kReportBytesMax = std::size_t{1} << 20;

/// The number of ctx.step() calls in one step that causes a warning.
constexpr std::uint64_t kAskedWarned = 10'000'000;

/// The interval at which a waiting loop tells the trainer again that it waits for commands. So the
/// trainer and the board see that the loop doesn't hang.
constexpr std::chrono::milliseconds kAwaitsAgain{200};

std::vector<Command> to_commands(std::span<const StoredCommand> stored) {
  std::vector<Command> commands;
  for (const StoredCommand& each : stored) {
    commands.push_back({.name = each.name,
                        .payload = Metrics::parse(each.payload, nullptr, false),
                        .step = each.step});
  }
  return commands;
}

thread_local TrainContext* current_context = nullptr;

/// Throws if a checkpoint folder contains the run folder, because a folder can't be copied into
/// itself.
void refuse_own_folder(const std::string& checkpoint, const std::string& run_dir) {
  const auto from = std::filesystem::weakly_canonical(checkpoint);
  const auto to = std::filesystem::weakly_canonical(run_dir);
  if (std::mismatch(from.begin(), from.end(), to.begin(), to.end()).first != from.end()) return;
  fail(Errc::invalid_argument,
       "report: checkpoint.path = \"{}\" contains the run's folder, into which the checkpoint "
       "is copied: save the checkpoint in another folder",
       checkpoint);
}

}  // namespace

WorkerContext::WorkerContext(int worker, std::string job_id, const Assignment& assignment,
                             const Start& start, WorkerLink& link, WorkerRuntime& runtime,
                             JobCheckpoints& checkpoints, JobLoaders& loaders, ReportLog& reports,
                             std::vector<BootstrapStage> stages)
    : worker_(worker),
      job_id_(std::move(job_id)),
      assignment_(assignment),
      checkpoint_(start.checkpoint.empty() ? std::nullopt
                                           : std::optional(Checkpoint{start.checkpoint})),
      link_(link),
      runtime_(runtime),
      checkpoints_(checkpoints),
      loaders_(loaders),
      reports_(reports),
      stages_(std::move(stages)),
      publishers_(runtime, loaders, job_id_, worker, assignment.num_workers) {
  begin_commands(start);
}

/// Finds out which commands are known to the state with which the loop begins, whether the chips
/// have kept that state or it is from a checkpoint.
void WorkerContext::begin_commands(const Start& start) {
  const bool is_kept = runtime_.state() != nullptr && start.resume.empty();
  std::vector<CommandMark> marks;
  if (is_kept) marks = runtime_.state()->commands();
  for (std::size_t i = 0; !is_kept && i < start.commands_read && i < start.commands.size(); ++i) {
    marks.push_back({start.commands[i].number, start.commands[i].step});
  }
  if (marks.empty()) return;
  marks = link_.permits().with_commands([&](LoopCommands& commands) {
    commands.begin_with(marks);
    return commands.marks();
  });
  if (runtime_.state() != nullptr) runtime_.state()->set_commands(marks);
  link_.commands_read({.worker = worker_,
                       .generation = start.generation,
                       .is_earlier = true,
                       .marks = std::move(marks)});
}

/// Reads the commands that are due, and records that with the state of the step.
std::vector<Command> WorkerContext::read_commands() {
  if (loaders_.is_repeating()) return {};
  CommandsRead read{.worker = worker_, .generation = runtime_.generation()};
  std::vector<CommandMark> marks;
  const std::vector<StoredCommand> due = link_.permits().with_commands([&](LoopCommands& commands) {
    std::vector<StoredCommand> stored = commands.read();
    marks = commands.marks();
    return stored;
  });
  if (due.empty()) return {};
  for (const StoredCommand& command : due) read.marks.push_back({command.number, command.step});
  link_.commands_read(read);
  if (runtime_.state() != nullptr) runtime_.state()->set_commands(std::move(marks));
  return to_commands(due);
}

std::vector<Command> WorkerContext::commands(std::source_location where) {
  runtime_.require_loop_thread("commands", where);
  ++*loaders_.questions();
  return read_commands();
}

std::vector<Command> WorkerContext::earlier_commands() {
  return link_.permits().with_commands(
      [](const LoopCommands& commands) { return to_commands(commands.earlier()); });
}

std::vector<Command> WorkerContext::wait_commands(std::source_location where) {
  runtime_.require_loop_thread("wait_commands", where);
  runtime_.recorder().at(where);
  run_step_closures();
  ++*loaders_.questions();
  const StateScope waiting(runtime_.recorder(), ActorState::commands);
  for (;;) {
    const auto marks = link_.permits().with_commands(
        [](const LoopCommands& commands) { return commands.marks(); });
    link_.awaits_commands({.worker = worker_,
                           .generation = runtime_.generation(),
                           .step = runtime_.step(),
                           .last = marks.empty() ? 0 : marks.back().number});
    if (link_.permits().wait_command(kAwaitsAgain)) return read_commands();
  }
}

/// Returns the step. Warns if the loop calls step() very often, because the loop may wait for a
/// step that never ends.
std::uint64_t WorkerContext::step() const {
  loaders_.asked_step();
  const std::uint64_t step = runtime_.step();
  if (std::exchange(asked_step_, step) != step) asked_ = 0;
  if (++asked_ == kAskedWarned) {
    runtime_.warn(
        fmt::format("ctx.step() has been called {} times in step {}: a step ends by sync() or by a "
                    "compiled function; without them a loop over ctx.step() never ends",
                    kAskedWarned, step));
  }
  return step;
}

void WorkerContext::look_for_nan(const Metrics& metrics, const std::source_location& where) {
  // Only worker 0's reports belong to the run, so only worker 0 warns.
  if (worker_ != 0 || warned_of_nan_) return;
  const auto number = find_not_finite(metrics);
  if (!number) return;
  warned_of_nan_ = true;
  logger("weft.worker")
      ->warn(
          "worker {} reports {} at step {} ({}): run the program again with "
          "WEFT_DETECT_ANOMALY=1, or weft::detect_anomaly in the loop, to see the first op "
          "that computes such a number, and its line",
          worker_, *number, runtime_.step(), file_line(where));
}

void WorkerContext::report(const Metrics& metrics, const std::optional<Checkpoint>& checkpoint,
                           std::source_location where) {
  runtime_.require_loop_thread("report", where);
  if (!metrics.is_object() && !metrics.is_null()) {
    fail(Errc::invalid_argument,
         "report: metrics = {}: expected a JSON object, such as {{\"loss\": 0.5}}",
         metrics.dump(-1, ' ', false, Metrics::error_handler_t::replace));
  }
  runtime_.recorder().at(where);
  const StateScope reporting(runtime_.recorder(), ActorState::reporting);
  look_for_nan(metrics, where);
  run_step_closures();
  if (loaders_.is_repeating()) return;
  const std::uint64_t now = runtime_.step();
  if (std::exchange(report_step_, now) != now) report_number_ = checkpoint_number_ = 0;
  Report report{.worker = worker_,
                .generation = runtime_.generation(),
                .step = now,
                .number = report_number_,
                .metrics = {}};
  Metrics::to_cbor(metrics.is_null() ? Metrics::object() : metrics, report.metrics);
  if (report.metrics.size() > kReportBytesMax) {
    fail(Errc::invalid_argument,
         "report: metrics of {} bytes as CBOR: expected at most {}; report numbers, and save "
         "large values in a checkpoint",
         report.metrics.size(), kReportBytesMax);
  }
  if (checkpoint) {
    require_local_path(checkpoint->path, "report: checkpoint.path");
    std::error_code ignored;
    if (!std::filesystem::is_directory(checkpoint->path, ignored)) {
      fail(Errc::not_found, "report: checkpoint.path = \"{}\": expected a folder",
           checkpoint->path);
    }
    refuse_own_folder(checkpoint->path, run_dir());
    report.checkpoint =
        store_checkpoint(run_dir(), now, checkpoint_number_++, worker_, checkpoint->path);
  }
  runtime_.recorder().events.put(EventKind::report, {.number = report.number});
  ++report_number_;
  reports_.add(report);
  link_.report(report);
}

JobCheckpoints& WorkerContext::checkpoints() {
  if (mesh() == nullptr) {
    fail(Errc::unavailable,
         "CheckpointManager: the job has no mesh (backend.backend = Backend::none), so each "
         "worker has its own tensors: set backend.backend = Backend::spmd, or save() to a file "
         "of your own");
  }
  return checkpoints_;
}

std::string returned_bytes(const Metrics& returned) {
  if (returned.is_null()) return "";
  std::string bytes;
  Metrics::to_cbor(returned, bytes);
  if (bytes.size() <= kReportBytesMax) return bytes;
  fail(Errc::invalid_argument,
       "the loop has returned {} bytes as CBOR: expected at most {}; save larger values in a "
       "checkpoint",
       bytes.size(), kReportBytesMax);
}

std::optional<std::string> site_of_this_threads_loop() {
  const auto* context = dynamic_cast<const WorkerContext*>(current_context);
  if (context == nullptr) return {};
  return context->site();
}

ContextScope::ContextScope(TrainContext& context) : before_(current_context) {
  current_context = &context;
}

ContextScope::~ContextScope() { current_context = before_; }

TrainContext& get_context() {
  if (current_context == nullptr) {
    fail(Errc::not_found,
         "there is no training context on this thread: get_context(), mesh() and device() work "
         "inside the loop that Trainer::fit() runs; on a thread that the loop starts, make a "
         "`weft::ContextScope scope(ctx);` first");
  }
  return *current_context;
}

const Mesh* mesh() { return get_context().mesh(); }

std::vector<Device> local_devices() {
  const TrainContext& context = get_context();
  const int count = context.num_local_devices();
  std::vector<Device> devices;
  for (int i = 0; i < count; ++i) {
    devices.push_back(
        {.kind = context.device_kind(), .id = context.world_rank() * count + i, .local_index = i});
  }
  return devices;
}

Device device() { return local_devices().front(); }

bool is_spmd_backend() { return get_context().is_spmd_backend(); }

}  // namespace weft
