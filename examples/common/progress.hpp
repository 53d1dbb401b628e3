#pragma once
/// Progress: shows the progress of a training: the mesh, a line per epoch, and the end.

#include <cstdint>

#include <weft/job.hpp>

namespace examples {

/// Prints the progress. On a terminal, a bar grows within each epoch; elsewhere only complete lines
/// are written.
class Progress : public weft::Callback {
 public:
  explicit Progress(std::uint64_t epochs);

  void on_start(const weft::JobInfo& job) override;
  void on_report(const weft::Metrics& metrics) override;
  void on_end(const weft::Result& result) override;

 private:
  std::uint64_t epochs_;
  bool terminal_;
  std::uint64_t steps_in_epoch_ = 0;
  std::uint64_t steps_per_epoch_ = 0;
  double loss_sum_ = 0;
};

}  // namespace examples
