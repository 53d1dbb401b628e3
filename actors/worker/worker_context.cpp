#include <weft/actors/worker/worker_context.hpp>

#include <algorithm>
#include <filesystem>
#include <utility>

#include <weft/actors/trainer/run_folder.hpp>
#include <weft/spmd/error.hpp>

namespace weft {
namespace {

/// Every report stays in the trainer's memory, as part of the history.
constexpr std::size_t kReportBytesMax = std::size_t{1} << 20;

thread_local TrainContext* current_context = nullptr;

/// A folder can't be copied into itself.
void refuse_own_folder(const std::string& checkpoint, const std::string& run_dir) {
  const auto from = std::filesystem::weakly_canonical(checkpoint);
  const auto to = std::filesystem::weakly_canonical(run_dir);
  if (std::mismatch(from.begin(), from.end(), to.begin(), to.end()).first != from.end()) return;
  fail(
      Errc::invalid_argument,
      "report: checkpoint.path = \"{}\" holds the run's folder, into which it is copied: save to a "
      "folder of its own",
      checkpoint);
}

}  // namespace

void WorkerContext::report(const Metrics& metrics, const std::optional<Checkpoint>& checkpoint) {
  if (!metrics.is_object() && !metrics.is_null()) {
    fail(Errc::invalid_argument, "report: metrics = {}: expected a JSON object, {{\"loss\": 0.5}}",
         metrics.dump(-1, ' ', false, Metrics::error_handler_t::replace));
  }
  if (std::exchange(report_step_, step()) != step()) report_number_ = checkpoint_number_ = 0;
  Report report{.worker = worker_,
                .generation = runtime_.generation(),
                .step = step(),
                .number = report_number_,
                .metrics = {}};
  Metrics::to_cbor(metrics.is_null() ? Metrics::object() : metrics, report.metrics);
  if (report.metrics.size() > kReportBytesMax) {
    fail(Errc::invalid_argument,
         "report: metrics of {} bytes as CBOR: expected at most {}; report numbers, and save what "
         "is large in a checkpoint",
         report.metrics.size(), kReportBytesMax);
  }
  if (checkpoint) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(checkpoint->path, ignored)) {
      fail(Errc::not_found, "report: checkpoint.path = \"{}\": expected a folder",
           checkpoint->path);
    }
    refuse_own_folder(checkpoint->path, run_dir());
    report.checkpoint =
        store_checkpoint(run_dir(), step(), checkpoint_number_++, worker_, checkpoint->path);
  }
  ++report_number_;
  reports_.add(report);
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
