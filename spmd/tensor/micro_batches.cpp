#include <weft/transforms.hpp>

#include <weft/ops.hpp>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

/// Rows k, k + count, ... of x.
Tensor part_of(const Tensor& x, std::int64_t k, std::int64_t count,
               const std::source_location& loc) {
  const Shape& shape = x.shape();
  std::vector<std::int64_t> cut(shape.begin(), shape.end());
  cut[0] /= count;
  const Shape part(cut);
  cut.insert(cut.begin() + 1, count);
  return reshape(slice(reshape(Operand(x, loc), Shape(cut)), 1, k, k + 1), part);
}

}  // namespace

LossAndGradients micro_batches(std::int64_t count, std::span<const Tensor> batch,
                               std::span<const Parameter> parameters,
                               const std::function<Tensor(std::span<const Tensor>)>& loss,
                               std::source_location loc) {
  {
    const Call call("micro_batches", loc);
    if (count < 1) call.refuse("count = {}: expected 1 or more", count);
    for (const Tensor& tensor : batch) {
      const TensorType& type = call.type(tensor);
      if (type.shape.size() > 0 && type.shape.size() < kDimCountMax && type.shape[0] % count == 0) {
        continue;
      }
      call.refuse("{} isn't cut into {} parts: dim 0 must be a multiple, of at most {} dims",
                  call.node(tensor)->label(), count, kDimCountMax - 1);
    }
  }
  LossAndGradients total;
  for (std::int64_t k = 0; k < count; ++k) {
    std::vector<Tensor> parts;
    for (const Tensor& tensor : batch) parts.push_back(part_of(tensor, k, count, loc));
    const Tensor part_loss = loss(parts);
    const std::vector<Tensor> grads = grad(part_loss, parameters, loc);
    total.loss = k == 0 ? part_loss : Operand(total.loss, loc) + part_loss;
    for (std::size_t i = 0; i < grads.size(); ++i) {
      if (k == 0) {
        total.grads.push_back(grads[i]);
      } else if (grads[i].defined()) {
        total.grads[i] = Operand(total.grads[i], loc) + grads[i];
      }
    }
  }
  const double share = 1 / static_cast<double>(count);
  total.loss = Operand(total.loss, loc) * share;
  for (Tensor& sum : total.grads) {
    if (sum.defined()) sum = Operand(sum, loc) * share;
  }
  return total;
}

}  // namespace weft
