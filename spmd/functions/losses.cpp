#include <weft/nn/losses.hpp>

#include <cmath>

#include <weft/nn/functional.hpp>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

/// Refuses operands that need broadcasting, because a loss compares them element by element.
void expect_like(Call& call, const Operand& input, const Tensor& target) {
  if (call.type(input) == call.type(target)) return;
  call.refuse("{} and the target {} differ; both must have one type", call.type(input).to_string(),
              call.type(target).to_string());
}

/// Computes the loss in f32 if autocast is on, or if the input and the target are bf16 or f16.
/// Without autocast, rounds the result to the operands' dtype. Returns nothing if the loss is to be
/// computed in the dtype of the operands.
template <typename Loss, typename Options>
std::optional<Tensor> through_f32(Call& call, Loss loss, const Operand& input, const Tensor& target,
                                  const Options& options) {
  if (call.widens(input, target)) return loss(call.widened(input), call.widened(target), options);
  expect_like(call, input, target);
  if (!is_half(call.type(input).dtype)) return {};
  return call.rounded_once(
      input, [&](const Tensor& wide) { return loss(wide, call.widened(target), options); });
}

/// Returns the weights, which have the first dims of `losses`, in a shape that broadcasts to
/// `losses`.
Tensor row_weights(Call& call, const Tensor& losses, const Tensor& weight) {
  const TensorType& type = call.type(losses);
  const Shape& rows = call.type(weight).shape;
  bool fits = rows.size() <= type.shape.size() && is_floating(call.type(weight).dtype);
  for (int dim = 0; fits && dim < rows.size(); ++dim) fits = rows[dim] == type.shape[dim];
  if (!fits) {
    call.refuse(
        "the sample_weight {} doesn't fit the losses {}: expected a floating tensor with the first "
        "dims of the losses",
        call.node(weight)->label(), type.to_string());
  }
  DimList sizes;
  for (int dim = 0; dim < type.shape.size(); ++dim) {
    sizes.push_back(dim < rows.size() ? rows[dim] : 1);
  }
  return reshape(cast(weight, type.dtype), Shape(std::span<const std::int64_t>(sizes)));
}

/// Applies the options' sample weights and reduction to the losses of the elements.
template <typename Options>
Tensor reduced(Call& call, const Tensor& losses, const Options& options) {
  const Tensor& weight = options.sample_weight;
  if (options.reduction == Reduction::mean && !weight.defined()) return mean(losses);
  const Tensor factor = weight.defined() ? row_weights(call, losses, weight) : Tensor();
  const Tensor weighted = factor.defined() ? losses * factor : losses;
  if (options.reduction == Reduction::none) return weighted;
  if (options.reduction == Reduction::sum) return sum(weighted);
  if (options.reduction == Reduction::batch_mean) {
    const Shape& shape = losses.shape();
    return sum(weighted) * (1 / static_cast<double>(shape.size() == 0 ? 1 : shape[0]));
  }
  if (losses.num_elements() == 0) return mean(losses);  // mean() throws for this
  const auto per_row = static_cast<double>(losses.num_elements() / weight.num_elements());
  return sum(weighted) / (sum(factor) * per_row);
}

/// Reduces the losses of rows that count differently in the mean: `share` is the weight of each
/// row, 0 if it is ignored.
template <typename Options>
Tensor reduced(Call& call, const Tensor& losses, const Tensor& share, const Options& options) {
  const Tensor& weight = options.sample_weight;
  const Tensor factor = weight.defined() ? row_weights(call, losses, weight) : Tensor();
  const Options unweighted{.reduction = options.reduction};
  const Tensor weighted = factor.defined() ? losses * factor : losses;
  if (options.reduction != Reduction::mean) return reduced(call, weighted, unweighted);
  return sum(weighted) / sum(factor.defined() ? share * factor : share);
}

void expect_classes(Call& call, const TensorType& input, const Tensor& labels) {
  const Shape& shape = input.shape;
  const Shape& rows = call.type(labels).shape;
  if (shape.size() > 0 && rows == Shape(std::span(shape.begin(), shape.end() - 1))) return;
  call.refuse("logits {} and labels {} don't fit; expected [...,classes] and i32 or i64 [...]",
              input.to_string(), call.type(labels).to_string());
}

void expect_class_weight(Call& call, const TensorType& input, const Tensor& weight) {
  const TensorType expected{input.dtype, {input.shape[input.shape.size() - 1]}};
  if (!weight.defined() || call.type(weight) == expected) return;
  call.refuse("the weight {} doesn't fit: expected {}, one element for each class of {}",
              call.node(weight)->label(), expected.to_string(), input.to_string());
}

/// Checked labels; `ignores` says whether some of them may equal `ignored`.
struct Labels {
  ValueId checked;
  bool ignores;
  std::int32_t ignored;
};
Labels checked_labels(Call& call, const Tensor& labels, std::int64_t classes,
                      const std::optional<std::int32_t>& ignore_index) {
  const ValueId given = call.value(call.index(labels));
  const bool ignores = ignore_index || call.trace().has_ignored(given);
  const std::int32_t ignored = ignore_index.value_or(kIgnoreIndex);
  return {call->check_index(given, classes, ignores ? ignored : 0), ignores, ignored};
}

/// Reduces the rows' losses. Before that, multiplies them by the weights of their classes, adds
/// `spread` if it is defined, and sets the losses of rows with ignored labels to 0.
template <typename Options>
Tensor reduced_rows(Call& call, Tensor losses, const Tensor& spread, const Labels& labels,
                    const Options& options) {
  const DType dtype = losses.type().dtype;
  Tensor share;
  if (options.weight.defined()) {
    const ValueId weights = call.value(options.weight);
    share = call.result(call->gather(weights, labels.checked));
    losses = losses * share;
  }
  if (spread.defined()) losses = losses + spread;
  if (labels.ignores) {
    const Tensor counted = not_equal(call.result(labels.checked), double(labels.ignored));
    losses = where(counted, losses, 0.0);
    share = share.defined() ? where(counted, share, 0.0) : cast(counted, dtype);
  }
  return share.defined() ? reduced(call, losses, share, options) : reduced(call, losses, options);
}

/// Computes the loss for labels that are probabilities.
Tensor soft_cross_entropy(Call& call, const Operand& logits, const Tensor& labels,
                          const CrossEntropyOptions& options) {
  const TensorType& type = call.type(logits);
  if (call.type(labels) != type) {
    call.refuse("logits {} and probabilities {} differ; both must have one type", type.to_string(),
                call.type(labels).to_string());
  }
  if (options.ignore_index)
    call.refuse("ignore_index is set, but works only with labels, not with probabilities");
  const auto classes = static_cast<double>(type.shape[type.shape.size() - 1]);
  const double smoothing = options.label_smoothing;
  Tensor terms = log_softmax(logits);
  terms = terms * (smoothing > 0 ? labels * (1 - smoothing) + smoothing / classes : labels);
  if (options.weight.defined()) terms = terms * options.weight;
  return reduced(call, -sum(terms, {-1}), options);
}

}  // namespace

Tensor mse_loss(Operand input, const Tensor& target, const LossOptions& options) {
  Call call("mse_loss", input.loc());
  if (const auto loss = through_f32(call, mse_loss, input, target, options)) return *loss;
  const Tensor error = input - target;
  return reduced(call, error * error, options);
}

Tensor l1_loss(Operand input, const Tensor& target, const LossOptions& options) {
  Call call("l1_loss", input.loc());
  if (const auto loss = through_f32(call, l1_loss, input, target, options)) return *loss;
  return reduced(call, abs(input - target), options);
}

Tensor smooth_l1_loss(Operand input, const Tensor& target, const SmoothL1Options& options) {
  Call call("smooth_l1_loss", input.loc());
  if (const auto loss = through_f32(call, smooth_l1_loss, input, target, options)) return *loss;
  const double beta = options.beta;
  if (!(beta >= 0)) call.refuse("beta = {}: expected 0 or more", beta);
  const Tensor distance = abs(input - target);
  if (beta == 0) return reduced(call, distance, options);
  const Tensor is_far = greater_equal(distance, beta);
  const Tensor near = where(is_far, 0.0, distance);  // keeps gradients of far elements finite
  return reduced(call, where(is_far, distance - 0.5 * beta, near * near * (0.5 / beta)), options);
}

Tensor huber_loss(Operand input, const Tensor& target, const HuberOptions& options) {
  Call call("huber_loss", input.loc());
  if (const auto loss = through_f32(call, huber_loss, input, target, options)) return *loss;
  const double delta = options.delta;
  if (!(delta > 0)) call.refuse("delta = {}: expected more than 0", delta);
  const Tensor distance = abs(input - target);
  const Tensor is_far = greater(distance, delta);
  const Tensor near = where(is_far, 0.0, distance);  // keeps gradients of far elements finite
  return reduced(call, where(is_far, (distance - 0.5 * delta) * delta, near * near * 0.5), options);
}

Tensor binary_cross_entropy(Operand input, const Tensor& target, const LossOptions& options) {
  Call call("binary_cross_entropy", input.loc());
  if (const auto loss = through_f32(call, binary_cross_entropy, input, target, options))
    return *loss;
  const auto bounded_log = [](const Tensor& x) {
    const double least = std::exp(-100.0);  // smaller than f32's normal numbers
    const Tensor is_small = less_equal(x, least);
    return where(is_small, -100.0, log(where(is_small, 1.0, x)));
  };
  const Tensor x = call.result(call.value(input));
  const Tensor rest = 1.0 - x;
  return reduced(call, -(target * bounded_log(x) + (1.0 - target) * bounded_log(rest)), options);
}

Tensor binary_cross_entropy_with_logits(Operand logits, const Tensor& target,
                                        const BinaryCrossEntropyOptions& options) {
  Call call("binary_cross_entropy_with_logits", logits.loc());
  BinaryCrossEntropyOptions wide = options;
  if (wide.pos_weight.defined()) wide.pos_weight = call.widened(wide.pos_weight);
  if (const auto loss = through_f32(call, binary_cross_entropy_with_logits, logits, target, wide)) {
    return *loss;
  }
  // log(1 + e^-|x|) doesn't overflow.
  const Tensor tail = log(exp(-abs(logits)) + 1);
  if (!options.pos_weight.defined()) {
    return reduced(call, maximum(logits, 0.0) - logits * target + tail, options);
  }
  const Tensor factor = (options.pos_weight - 1.0) * target + 1.0;
  if (factor.type() != call.type(target)) {
    call.refuse("the pos_weight {} doesn't broadcast to {}", call.node(options.pos_weight)->label(),
                call.type(target).to_string());
  }
  return reduced(call, (1.0 - target) * logits + factor * (tail + maximum(-logits, 0.0)), options);
}

Tensor kl_div(Operand input, const Tensor& target, const KlDivOptions& options) {
  Call call("kl_div", input.loc());
  if (const auto loss = through_f32(call, kl_div, input, target, options)) return *loss;
  if (options.log_target) return reduced(call, exp(target) * (target - input), options);
  const Tensor is_positive = greater(target, 0.0);
  const Tensor entropy = target * log(where(is_positive, target, 1.0));
  return reduced(call, where(is_positive, entropy, 0.0) - target * input, options);
}

Tensor cross_entropy(Operand logits, const Tensor& labels, const CrossEntropyOptions& options) {
  Call call("cross_entropy", logits.loc());
  const TensorType type = call.type(logits);
  const auto of_f32 = [&](const Tensor& wide) {
    CrossEntropyOptions given = options;
    given.weight = call.widened(options.weight);
    return cross_entropy(wide, call.widened(labels), given);
  };
  if (call.widens(logits)) return of_f32(call.widened(logits));
  const double smoothing = options.label_smoothing;
  if (!(smoothing >= 0 && smoothing <= 1)) {
    call.refuse("label_smoothing = {}: expected 0 to 1", smoothing);
  }
  const bool is_soft = is_floating(call.type(labels).dtype);
  if (!is_soft) expect_classes(call, type, labels);
  expect_class_weight(call, type, options.weight);
  if (is_half(type.dtype)) return call.rounded_once(logits, of_f32);
  if (is_soft) return soft_cross_entropy(call, logits, labels, options);
  const std::int64_t classes = type.shape[type.shape.size() - 1];
  const ValueId x = call.value(logits);
  const Labels given = checked_labels(call, labels, classes, options.ignore_index);
  Tensor losses = call.result(call->cross_entropy(x, given.checked));
  Tensor spread;
  if (smoothing > 0) {
    const Tensor terms = log_softmax(logits);
    spread = sum(options.weight.defined() ? terms * options.weight : terms, {-1}) *
             (-smoothing / static_cast<double>(classes));
    losses = losses * (1 - smoothing);
  }
  return reduced_rows(call, losses, spread, given, options);
}

Tensor nll_loss(Operand input, const Tensor& labels, const NllLossOptions& options) {
  Call call("nll_loss", input.loc());
  const auto of_f32 = [&](const Tensor& wide) {
    NllLossOptions given = options;
    given.weight = call.widened(options.weight);
    return nll_loss(wide, labels, given);
  };
  if (call.widens(input)) return of_f32(call.widened(input));
  const TensorType type = call.type(input);
  expect_classes(call, type, labels);
  expect_class_weight(call, type, options.weight);
  if (is_half(type.dtype)) return call.rounded_once(input, of_f32);
  const std::int64_t classes = type.shape[type.shape.size() - 1];
  const ValueId x = call.value(input);
  const Labels given = checked_labels(call, labels, classes, options.ignore_index);
  const Tensor places = unsqueeze(call.result(given.checked), -1);
  const Tensor chosen = call.result(call->take_along(x, call.value(places)));
  return reduced_rows(call, -squeeze(chosen, -1), {}, given, options);
}

Tensor cosine_similarity(Operand a, const Tensor& b, int dim, double eps) {
  Call call("cosine_similarity", a.loc());
  if (call.widens(a, b)) return cosine_similarity(call.widened(a), call.widened(b), dim, eps);
  if (!(eps > 0)) call.refuse("eps = {}: expected more than 0", eps);
  if (is_half(call.type(a).dtype)) {
    const auto of_f32 = [&](const Tensor& wide) {
      return cosine_similarity(wide, call.widened(b), dim, eps);
    };
    return call.rounded_once(a, of_f32);
  }
  const Tensor product = a * b;
  const Shape& shape = product.shape();
  const int axis = call.dim_of(dim, shape.size());
  const auto norm_of = [&](const Operand& x) {
    return maximum(norm(call.type(x).shape == shape ? x : broadcast_to(x, shape), 2, {axis}), eps);
  };
  return sum(product, {axis}) / (norm_of(a) * norm_of(b));
}

Tensor cosine_embedding_loss(Operand a, const Tensor& b, const Tensor& target,
                             const CosineEmbeddingOptions& options) {
  Call call("cosine_embedding_loss", a.loc());
  if (call.widens(a, b, target)) {
    return cosine_embedding_loss(call.widened(a), call.widened(b), call.widened(target), options);
  }
  expect_like(call, a, b);
  const TensorType type = call.type(a);
  const int last = type.shape.size() - 1;
  if (last < 0 ||
      call.type(target) !=
          TensorType{type.dtype, Shape(std::span(type.shape.begin(), type.shape.end() - 1))}) {
    call.refuse("the target {} doesn't fit {}: expected [...] for [...,size]",
                call.node(target)->label(), type.to_string());
  }
  if (is_half(type.dtype)) {
    return call.rounded_once(a, [&](const Tensor& wide) {
      return cosine_embedding_loss(wide, call.widened(b), call.widened(target), options);
    });
  }
  constexpr double kEps = 1e-12;  // torch adds this to the squares
  const auto square = [&](const Tensor& x) { return sum(x * x, {last}) + kEps; };
  const Tensor cosine = sum(a * b, {last}) / sqrt(square(a.tensor()) * square(b));
  return reduced(call, where(greater(target, 0.0), 1.0 - cosine, relu(cosine - options.margin)),
                 options);
}

}  // namespace weft
