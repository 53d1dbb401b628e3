#include <weft/nn/transforms.hpp>

#include <weft/ops/elementwise.hpp>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

/// Returns rows k, k + count, ... of x.
Tensor part_of(const Tensor& x, std::int64_t k, std::int64_t count,
               const std::source_location& loc) {
  const Shape& shape = x.shape();
  std::vector<std::int64_t> cut(shape.begin(), shape.end());
  cut[0] /= count;
  const Shape part(cut);
  cut.insert(cut.begin() + 1, count);
  return reshape(slice(reshape(Operand(x, loc), Shape(cut)), 1, k, k + 1), part);
}

/// The total of the losses of the parts so far. If the loss is a sum divided by a count, adds up
/// sums and counts separately, because the quotient of a single part may be 0 / 0.
class Total {
 public:
  void add(Call& call, const Tensor& loss, std::span<const Parameter> parameters) {
    std::vector<NodePtr> nodes;
    for (const Parameter& parameter : parameters) nodes.push_back(call.node(parameter));
    call.trace().record_again(call.node(loss), nodes);  // a read may have run the ops of the loss
    const LossMean mean = expect_mean(call, loss);
    if (!loss_.defined()) {
      first_ = mean;
      dtype_ = loss.type().dtype;
    }
    const bool is_quotient = mean.sum != kNoId;
    if (is_quotient != (first_.sum != kNoId) || (is_quotient && mean.factor != first_.factor)) {
      call.refuse(
          "the losses of the parts are computed in different ways; compute the loss of every part "
          "in the same way");
    }
    Tensor own = loss;
    if (mean.sum != kNoId) {
      own = reshape(call.result(mean.sum), Shape{});
      const DType dtype = own.type().dtype;
      // bf16 counts exactly only to 256, and f16 only to 2048.
      const DType exact = is_half(dtype) ? DType::f32 : dtype;
      sum_into(count_, reshape(cast(call.result(mean.count), exact), Shape{}));
    }
    sum_into(loss_, own);
    const std::vector<Tensor> grads = grad(own, parameters, call.loc());
    if (grads_.empty()) {
      grads_ = grads;
      return;
    }
    for (std::size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].defined() || !is_used(grads[i])) continue;
      const auto gradient = grads[i].node()->gradient;
      if (is_used(grads_[i])) {
        sum_into(grads_[i], grads[i]);
      } else {
        grads_[i] = grads[i];
      }
      grads_[i].node()->gradient = gradient;
    }
  }

  LossAndGradients mean(Call& call, std::int64_t parts) {
    const Tensor share = count_.defined() ? first_.factor / count_ : Tensor();
    LossMean whole{.factor = first_.factor,
                   .elements = first_.elements * static_cast<double>(parts)};
    if (count_.defined()) {
      whole.sum = call.value(loss_);
      whole.count = call.value(count_);
    }
    const auto scaled = [&](const Tensor& sum) {
      return share.defined() ? sum * cast(share, sum.type().dtype)
                             : sum * (1 / static_cast<double>(parts));
    };
    LossAndGradients result{.loss = cast(scaled(loss_), dtype_), .grads = {}};
    whole.trace = result.loss.node()->trace;
    whole.loss = call.value(result.loss);
    const auto of = std::make_shared<const LossMean>(whole);
    for (const Tensor& sum : grads_) {
      if (!sum.defined()) {
        result.grads.emplace_back();
        continue;
      }
      GradientOf gradient = *sum.node()->gradient;
      gradient.mean = of;
      result.grads.push_back(scaled(sum));
      result.grads.back().node()->gradient = std::make_shared<const GradientOf>(gradient);
    }
    return result;
  }

 private:
  static void sum_into(Tensor& sum, const Tensor& more) { sum = sum.defined() ? sum + more : more; }
  static bool is_used(const Tensor& grad) { return grad.node()->gradient->is_used; }

  static LossMean expect_mean(Call& call, const Tensor& loss) {
    const Program& program = call.trace().builder().program();
    const ValueId value = call.value(loss);
    const LossMean mean = loss_mean(program, value, call.node(loss)->trace);
    const OpId division = mean.sum == kNoId ? find_count(program, value) : kNoId;
    if (division == kNoId) return mean;
    call.refuse(
        "the loss contains a division by a count of its data at {}, but isn't only this quotient; "
        "the mean over the parts would differ from the mean over the batch, because parts have "
        "unequal counts: write the loss as one quotient, sum / count",
        program.loc(division));
  }

  Tensor loss_;
  Tensor count_;  // undefined if all parts count equally
  std::vector<Tensor> grads_;
  LossMean first_;            // mean of the first part's loss
  DType dtype_ = DType::f32;  // dtype of the losses
};

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
      call.refuse(
          "{} can't be cut into {} parts: dim 0 must be a multiple of their number, and the tensor "
          "may have at most {} dims",
          call.node(tensor)->label(), count, kDimCountMax - 1);
    }
  }
  Total total;
  for (std::int64_t k = 0; k < count; ++k) {
    std::vector<Tensor> parts;
    for (const Tensor& tensor : batch) parts.push_back(part_of(tensor, k, count, loc));
    const Tensor part_loss = loss(parts);
    Call call("micro_batches", loc);
    if (count == 1) return {part_loss, grad(part_loss, parameters, loc)};
    total.add(call, part_loss, parameters);
  }
  Call call("micro_batches", loc);
  return total.mean(call, count);
}

}  // namespace weft
