#include <weft/attention.hpp>

#include <algorithm>
#include <cmath>

#include <weft/functional.hpp>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

/// A score that leaves nothing of its weight, without the NaN of infinities.
constexpr double kUnseen = -1e30;

void expect_attention(Call& call, const TensorType& query, const TensorType& key,
                      const TensorType& value, bool enable_gqa) {
  const auto fits = [](const Shape& a, const Shape& b, std::initializer_list<int> dims) {
    return std::ranges::all_of(dims, [&](int dim) { return a[dim] == b[dim]; });
  };
  if (query.shape.size() == 4 && key.shape.size() == 4 && value.shape.size() == 4 &&
      query.dtype == key.dtype && key.dtype == value.dtype &&
      fits(query.shape, key.shape, {0, 3}) && fits(key.shape, value.shape, {0, 1, 2})) {
    const std::int64_t heads = query.shape[1];
    const std::int64_t groups = key.shape[1];
    if (heads == groups) return;
    if (enable_gqa && groups > 0 && heads % groups == 0) return;
    if (heads % std::max<std::int64_t>(groups, 1) == 0) {
      call.refuse("q {} and k {} have {} and {} heads; set enable_gqa if they share them",
                  query.to_string(), key.to_string(), heads, groups);
    }
  }
  call.refuse(
      "q {}, k {} and v {} don't fit; it takes [B,H,S,K], [B,H,T,K] and [B,H,T,E] of one dtype",
      query.to_string(), key.to_string(), value.to_string());
}

/// x[B,G,T,K] with each head so often in a row that there are `heads`.
Tensor with_heads(const Tensor& x, std::int64_t heads) {
  const Shape shape = x.shape();
  if (shape[1] == heads) return x;
  const std::int64_t times = heads / shape[1];
  const Tensor apart = reshape(x, {shape[0], shape[1], 1, shape[2], shape[3]});
  const Tensor repeated = broadcast_to(apart, Shape{shape[0], shape[1], times, shape[2], shape[3]});
  return reshape(repeated, {shape[0], heads, shape[2], shape[3]});
}

/// Refuses what would broadcast the scores to another shape.
void expect_of_scores(Call& call, const char* what, const Tensor& tensor, const Tensor& scores) {
  const Shape& shape = call.type(tensor).shape;
  const Shape& full = scores.shape();
  bool fits = shape.size() <= full.size();
  for (int i = 1; fits && i <= shape.size(); ++i) {
    const std::int64_t size = shape[shape.size() - i];
    fits = size == 1 || size == full[full.size() - i];
  }
  if (fits) return;
  call.refuse("the {} {} doesn't broadcast to the scores {}", what, call.node(tensor)->label(),
              scores.type().to_string());
}

Tensor composed(Call& call, const Tensor& q, const Tensor& k, const Tensor& v,
                const AttentionOptions& options, double scale) {
  Tensor scores = matmul(q, transpose(k, -2, -1)) * scale;
  if (options.bias.defined()) {
    expect_of_scores(call, "bias", options.bias, scores);
    scores = scores + options.bias;
  }
  Tensor seen;
  if (options.causal) {
    const Shape places{scores.shape()[2], scores.shape()[3]};
    seen = less_equal(iota(places, 1), iota(places, 0));
  }
  if (options.mask.defined()) {
    if (call.type(options.mask).dtype != DType::pred) {
      call.refuse("the mask {} isn't pred; what is added to the scores is the bias",
                  call.node(options.mask)->label());
    }
    expect_of_scores(call, "mask", options.mask, scores);
    seen = seen.defined() ? logical_and(options.mask, seen) : options.mask;
  }
  if (seen.defined()) scores = where(seen, scores, kUnseen);
  Tensor weights = softmax(scores);
  // A query that sees no key has equal weights so far, and so has one whose keys a bias hides.
  if (seen.defined()) weights = where(seen, weights, 0.0);
  if (options.dropout > 0) weights = dropout(weights, options.dropout);
  return matmul(weights, v);
}

}  // namespace

Tensor attention(Operand q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  Call call("attention", q.loc());
  if (call.lowers(q, k, v)) {
    return attention(call.lowered(q), call.lowered(k), call.lowered(v), options);
  }
  const TensorType query = call.type(q);
  expect_attention(call, query, call.type(k), call.type(v), options.enable_gqa);
  if (!(options.dropout >= 0 && options.dropout <= 1)) {
    call.refuse("dropout = {}: expected 0 to 1", options.dropout);
  }
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(query.shape[3])));
  const Tensor keys = with_heads(k, query.shape[1]);
  const Tensor values = with_heads(v, query.shape[1]);
  if (options.mask.defined() || options.bias.defined() || options.dropout > 0) {
    return composed(call, q.tensor(), keys, values, options, scale);
  }
  const ValueId queries = call.value(q);
  const ValueId key = call.value(keys);
  return call.result(call->attention(queries, key, call.value(values),
                                     {.causal = options.causal, .scale = scale}));
}

Tensor rope(Operand x, double base, const Tensor& start) {
  Call call("rope", x.loc());
  if (call.widens(x)) return rope(call.widened(x), base, start);
  const TensorType type = call.type(x);
  const int last = type.shape.size() - 1;
  if (last < 1 || type.shape[last] % 2 != 0 || !is_floating(type.dtype) || !(base > 0)) {
    call.refuse("{} and base {}: it takes floating [...,S,K], K even, and a base above 0",
                call.node(x)->label(), base);
  }
  if (start.defined() && call.type(start) != TensorType{DType::i32, {}}) {
    call.refuse("start {}: expected i32[]", call.node(start)->label());
  }
  const std::int64_t half = type.shape[last] / 2;
  const Tensor rates = exp(iota({half}, 0, DType::f64) * (-std::log(base) / double(half)));
  Tensor places = iota({type.shape[last - 1], half}, 0, DType::f64);
  if (start.defined()) places = places + cast(start, DType::f64);
  const Tensor angles = places * rates;
  const Tensor c = cast(cos(angles), type.dtype);
  const Tensor s = cast(sin(angles), type.dtype);
  const Tensor first = slice(x, last, 0, half);
  const Tensor second = slice(x, last, half, 2 * half);
  return cat({first * c - second * s, second * c + first * s}, last);
}

}  // namespace weft
