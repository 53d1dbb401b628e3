#include <weft/actors/worker/worker_context.hpp>

#include <filesystem>

#include <weft/actors/trainer/run_folder.hpp>
#include <weft/spmd/error.hpp>

namespace weft {
namespace {

/// Every report stays in the trainer's memory, as part of the history.
constexpr std::size_t kReportBytesMax = std::size_t{1} << 20;

thread_local TrainContext* current_context = nullptr;

}  // namespace

void WorkerContext::report(const Metrics& metrics, const std::optional<Checkpoint>& checkpoint) {
  if (!metrics.is_object()) {
    fail(Errc::invalid_argument, "report: metrics = {}: expected a JSON object, {{\"loss\": 0.5}}",
         metrics.dump());
  }
  Report report{.worker = worker_,
                .step = step(),
                .metrics = metrics.dump(-1, ' ', false, Metrics::error_handler_t::replace)};
  if (report.metrics.size() > kReportBytesMax) {
    fail(Errc::invalid_argument,
         "report: metrics of {} bytes as JSON: expected at most {}; report numbers, and save what "
         "is large in a checkpoint",
         report.metrics.size(), kReportBytesMax);
  }
  if (checkpoint) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(checkpoint->path, ignored)) {
      fail(Errc::not_found, "report: checkpoint.path = \"{}\": expected a folder",
           checkpoint->path);
    }
    report.checkpoint = store_checkpoint(run_dir(), checkpoints_++, checkpoint->path);
  }
  link_.report(report);
}

ContextScope::ContextScope(TrainContext& context) : before_(current_context) {
  current_context = &context;
}

ContextScope::~ContextScope() { current_context = before_; }

TrainContext& get_context() {
  if (current_context == nullptr) {
    fail(Errc::not_found,
         "there is no training context on this thread: get_context() and mesh() work inside the "
         "loop that Trainer::fit() runs");
  }
  return *current_context;
}

const Mesh* mesh() { return get_context().mesh(); }

bool is_spmd_backend() { return get_context().is_spmd_backend(); }

}  // namespace weft
