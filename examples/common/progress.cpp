#include "examples/common/progress.hpp"

#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

#include <weft/job.hpp>

namespace examples {

Progress::Progress(std::uint64_t epochs)
    : epochs_(epochs), terminal_(::isatty(STDOUT_FILENO) != 0) {}

void Progress::on_start(const weft::JobInfo& job) {
  fmt::print("job {} on {}\n", job.id,
             job.num_workers == 0 ? std::string("this process")
                                  : fmt::format("{} workers", job.num_workers));
  if (job.mesh) fmt::print("mesh {}\n{}", job.mesh->to_string(), job.mesh->grid());
  std::fflush(stdout);
}

void Progress::on_report(const weft::Metrics& metrics) {
  if (!metrics.contains("loss")) return;
  ++steps_in_epoch_;
  loss_sum_ += metrics["loss"].get<double>();
  const auto epoch = metrics["epoch"].get<std::uint64_t>();
  if (!metrics.contains("test_accuracy")) {
    if (!terminal_ || steps_per_epoch_ == 0) return;
    const auto filled = static_cast<std::size_t>(30 * steps_in_epoch_ / steps_per_epoch_);
    fmt::print("\repoch {:3}/{}  [{:30}]", epoch, epochs_, std::string(filled, '='));
    std::fflush(stdout);
    return;
  }
  fmt::print("{}epoch {:3}/{}  loss {:.4f}  test accuracy {:.4f}  {:.0f} us/step{}\n",
             terminal_ ? "\r" : "", epoch, epochs_,
             loss_sum_ / static_cast<double>(steps_in_epoch_),
             metrics["test_accuracy"].get<double>(), metrics["step_us"]["median"].get<double>(),
             terminal_ ? "   " : "");
  std::fflush(stdout);
  steps_per_epoch_ = steps_in_epoch_;
  steps_in_epoch_ = 0;
  loss_sum_ = 0;
}

void Progress::on_end(const weft::Result& result) {
  if (terminal_ && steps_in_epoch_ != 0) fmt::print("\n");
  if (result.ok() && result.metrics.contains("step_us")) {
    fmt::print("time per step: median {:.0f} us, p99 {:.0f} us\n",
               result.metrics["step_us"]["median"].get<double>(),
               result.metrics["step_us"]["p99"].get<double>());
  }
  fmt::print("run folder: {}\n", result.path);
}

}  // namespace examples
