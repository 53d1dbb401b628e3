#pragma once
/// The models that bench_models trains. torch_models.py has the same models for torch.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <weft/weft.hpp>

namespace weft::bench {

/// One batch: elements of `x` (f32 or i32) and labels.
struct HostBatch {
  std::vector<float> numbers{};     ///< the elements of `x`, for the models "mlp" and "cnn"
  std::vector<std::int32_t> ids{};  ///< the elements of `x`, for the model "gpt"
  std::vector<std::int32_t> labels{};
  Shape x_shape{};
  Shape labels_shape{};
};

class Model : public Module {
 public:
  virtual Tensor loss(const Tensor& x, const Tensor& labels) const = 0;
  /// Returns batch number `number` of the data, which are generated for the model.
  virtual HostBatch batch(std::uint64_t number) const = 0;
};

/// Makes the model "mlp", "cnn" or "gpt". If `tiny`, the model is just large enough to show that
/// the benchmark works.
std::unique_ptr<Model> make_model(const std::string& name, bool tiny);

}  // namespace weft::bench
