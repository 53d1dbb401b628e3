#pragma once
/// Runs the trainings of tests/golden/torch/make.py, with the same models, parameters, batches and
/// optimizers, on any runtime, and compares them with torch's results.

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <weft/sharding/mesh.hpp>

namespace weft::testing {

struct TorchCase {
  std::string model;      ///< "mlp", "cnn", "gpt", "gpt_untied"
  std::string optimizer;  ///< "sgd", "momentum", "nesterov", "adam", "adamw", "groups", "clip"

  std::string name() const { return model + "_" + optimizer; }
};
inline std::ostream& operator<<(std::ostream& out, const TorchCase& which) {
  return out << which.name();
}
/// Returns all cases that have golden values.
std::vector<TorchCase> torch_cases();

struct TorchTraining {
  std::vector<double> losses;  ///< the loss of each step
  std::vector<double> norms;   ///< norms of the gradients before clipping; empty without clipping
  /// The parameters after the last step.
  std::vector<std::pair<std::string, std::vector<float>>> parameters;
};
/// Runs the case in the calling thread's RuntimeScope. `mesh` is the runtime's mesh or null. An
/// axis "data" shards the batch, and an axis "model" shards pairs of layers.
TorchTraining train(const TorchCase& which, const Mesh* mesh);

/// Expects every number to agree with torch's to a relative 1e-4, or to 1e-6 if it is below 0.01.
void expect_as_torch(const TorchCase& which, const TorchTraining& training);

/// Expects that `actual` agrees with these golden elements within the same tolerances.
void expect_as_torch(const std::string& what, const std::vector<float>& actual,
                     const std::vector<float>& expected);

}  // namespace weft::testing
