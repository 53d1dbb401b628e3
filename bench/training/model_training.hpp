#pragma once
/// ModelTraining: the training of a model by weft, on data and initial parameters that peers read.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/training/models.hpp"

namespace weft::bench {

struct ModelTrainingOptions {
  std::string model = "mlp";
  std::string dtype = "f32";       ///< dtype of matrix products: "f32" or "bf16"
  std::string state = "unmarked";  ///< how parameters are marked: or "zero1", "fsdp"
  bool tiny = false;
  /// Has state.safetensors, the initial parameters. They are written there unless the file exists.
  std::string folder{};
};

/// The milliseconds and the losses of steps.
struct TrainedSteps {
  std::vector<double> ms{};
  std::vector<double> losses{};
};

/// Lives in the loop of a job whose mesh has an axis "data".
class ModelTraining {
 public:
  ModelTraining(const ModelTrainingOptions& options, const Mesh& mesh);

  /// Writes the batches to batches.json, x.bin and labels.bin in the folder, for peers.
  void write_batches() const;
  TrainedSteps run(int count);

 private:
  Tensor update(const Tensor& x, const Tensor& labels);

  const ModelTrainingOptions options_;
  const Mesh& mesh_;
  std::unique_ptr<Model> model_;
  AdamW optimizer_;
  std::vector<HostBatch> batches_;
  std::uint64_t step_ = 0;
  std::function<Tensor(const Tensor&, const Tensor&)> train_;
};

/// Throws corrupt, with the names, unless two sides have computed the same losses in the first
/// steps, up to the relative `limit`. Later losses differ, because training amplifies rounding.
void expect_equal_losses(const std::string& name, const std::vector<double>& losses,
                         const std::string& peer, const std::vector<double>& of_peer, double limit);

}  // namespace weft::bench
