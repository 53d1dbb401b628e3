#pragma once
/// The models that bench_models trains. torch_models.py has the same ones.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <weft/weft.hpp>

namespace weft::bench {

/// One batch: elements of `x` (f32 or i32) and labels.
struct HostBatch {
  std::vector<float> numbers{};     ///< x of Mlp and Cnn
  std::vector<std::int32_t> ids{};  ///< x of Gpt
  std::vector<std::int32_t> labels{};
  Shape x_shape{};
  Shape labels_shape{};
};

class Model : public Module {
 public:
  virtual Tensor loss(const Tensor& x, const Tensor& labels) const = 0;
  /// Returns batch `number` of the data that are generated for the model.
  virtual HostBatch batch(std::uint64_t number) const = 0;
};

/// Makes "mlp", "cnn" or "gpt". With `tiny`, the sizes only show that the benchmark works.
std::unique_ptr<Model> make_model(const std::string& name, bool tiny);

}  // namespace weft::bench
