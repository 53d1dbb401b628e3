#include "examples/common/accuracy.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace examples {

double accuracy(weft::DeviceLoader& loader,
                const std::function<weft::Tensor(const weft::Tensor&)>& logits) {
  std::int64_t right = 0;
  std::int64_t items = 0;
  for (const weft::Batch& batch : loader.all()) {
    const std::vector<float> scores = logits(batch["x"]).to_vector();
    const std::vector<float> labels = weft::cast(batch["y"], weft::DType::f32).to_vector();
    const std::size_t classes = scores.size() / labels.size();
    for (std::int64_t row = 0; row < batch.num_items(); ++row) {
      const auto at = static_cast<std::size_t>(row);
      const auto of_row = std::span(scores).subspan(at * classes, classes);
      const auto best = std::ranges::max_element(of_row) - of_row.begin();
      right += best == static_cast<std::ptrdiff_t>(labels[at]) ? 1 : 0;
    }
    items += batch.num_items();
  }
  return static_cast<double>(right) / static_cast<double>(items);
}

}  // namespace examples
