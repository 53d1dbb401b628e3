#pragma once
/// The trainings of tests/golden/torch/make.py: the same models, parameters, batches and
/// optimizers, to be run on any runtime and compared with what torch computed.

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <weft/mesh.hpp>

namespace weft::testing {

struct TorchCase {
  std::string model;      ///< "mlp", "cnn", "gpt", "gpt_untied"
  std::string optimizer;  ///< "sgd", "momentum", "nesterov", "adam", "adamw", "groups", "clip"

  std::string name() const { return model + "_" + optimizer; }
};
inline std::ostream& operator<<(std::ostream& out, const TorchCase& which) {
  return out << which.name();
}
/// All that there are golden values of.
std::vector<TorchCase> torch_cases();

struct TorchTraining {
  std::vector<double> losses;  ///< by step
  std::vector<double> norms;   ///< of the gradients before they were clipped; empty if they weren't
  std::vector<std::pair<std::string, std::vector<float>>> parameters;  ///< after the last step
};
/// Runs the case in the calling thread's RuntimeScope. `mesh` is the runtime's, or null: an axis
/// "data" shards the batch, and an axis "model" the layers, in pairs.
TorchTraining train(const TorchCase& which, const Mesh* mesh);

/// Every number agrees with torch's to a relative 1e-4, or, where it is below 0.01, to 1e-6.
void expect_as_torch(const TorchCase& which, const TorchTraining& training);

/// Expects `actual` to agree with these golden elements, as above.
void expect_as_torch(const std::string& what, const std::vector<float>& actual,
                     const std::vector<float>& expected);

}  // namespace weft::testing
