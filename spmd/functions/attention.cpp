#include <weft/nn/attention.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <weft/nn/functional.hpp>
#include <weft/nn/transforms.hpp>
#include <weft/ops/control_flow.hpp>
#include <weft/sharding/shard_map.hpp>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

/// ring_attention gives a hidden key this score, so that its weight is 0. Unlike -infinity, the
/// score can't lead to NaN.
constexpr double kUnseen = -1e30;
/// All other functions give a hidden key this score.
constexpr double kNoScore = -std::numeric_limits<double>::infinity();

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
      call.refuse(
          "q {} and k {} have {} and {} heads; set enable_gqa if query heads share key heads",
          query.to_string(), key.to_string(), heads, groups);
    }
  }
  call.refuse(
      "q {}, k {} and v {} don't fit; expected [B,H,S,K], [B,H,T,K] and [B,H,T,E] of one dtype",
      query.to_string(), key.to_string(), value.to_string());
}

/// Repeats each head of x[B,G,T,K], so that there are `heads` heads.
Tensor with_heads(const Tensor& x, std::int64_t heads) {
  const Shape shape = x.shape();
  if (shape[1] == heads) return x;
  const std::int64_t times = heads / shape[1];
  const Tensor apart = reshape(x, {shape[0], shape[1], 1, shape[2], shape[3]});
  const Tensor repeated = broadcast_to(apart, Shape{shape[0], shape[1], times, shape[2], shape[3]});
  return reshape(repeated, {shape[0], heads, shape[2], shape[3]});
}

/// Refuses a tensor that would broadcast the scores to a larger shape.
void expect_of_scores(Call& call, const char* what, const Tensor& tensor,
                      const TensorType& scores) {
  const Shape& shape = call.type(tensor).shape;
  const Shape& full = scores.shape;
  bool fits = shape.size() <= full.size();
  for (int i = 1; fits && i <= shape.size(); ++i) {
    const std::int64_t size = shape[shape.size() - i];
    fits = size == 1 || size == full[full.size() - i];
  }
  if (fits) return;
  call.refuse("the {} {} doesn't broadcast to the scores {}", what, call.node(tensor)->label(),
              scores.to_string());
}

/// Returns pred[B,1,S,T], true for the keys in a query's segment. Returns an undefined tensor if
/// there are no segment ids.
Tensor mask_of_segments(Call& call, const AttentionOptions& options, const Shape& scores) {
  const auto expect_ids = [&](const char* what, const Tensor& ids, int dim) {
    const TensorType& type = call.type(ids);
    const bool is_number = type.dtype == DType::i32 || type.dtype == DType::i64;
    if (is_number && type.shape == Shape{scores[0], scores[dim]}) return;
    call.refuse("the {} {} don't fit: expected i32[{},{}]", what, call.node(ids)->label(),
                scores[0], scores[dim]);
  };
  const Tensor& queries = options.segment_ids;
  if (!queries.defined()) {
    if (options.key_segment_ids.defined())
      call.refuse("key_segment_ids is given without segment_ids; give both");
    return {};
  }
  const Tensor& keys = options.key_segment_ids.defined() ? options.key_segment_ids : queries;
  expect_ids("segment_ids", queries, 2);
  expect_ids(
      options.key_segment_ids.defined() ? "key_segment_ids" : "segment_ids (also for the keys)",
      keys, 3);
  const Tensor of_query = reshape(queries, {scores[0], 1, scores[2], 1});
  const Tensor of_key = reshape(keys, {scores[0], 1, 1, scores[3]});
  return logical_and(equal(of_query, of_key), not_equal(of_query, 0));
}

/// Returns the bias that the op takes, with -inf for each hidden key. The bias has four dims; dims
/// that are broadcast have size 1. Returns an undefined tensor if no key is hidden and no bias is
/// given.
Tensor bias_of(Call& call, const AttentionOptions& options, const TensorType& scores) {
  Tensor bias;
  if (options.bias.defined()) {
    expect_of_scores(call, "bias", options.bias, scores);
    bias = cast(options.bias, scores.dtype);
  }
  if (options.mask.defined()) {
    if (call.type(options.mask).dtype != DType::pred) {
      call.refuse("the mask {} isn't pred; pass values that are added to the scores as the bias",
                  call.node(options.mask)->label());
    }
    expect_of_scores(call, "mask", options.mask, scores);
  }
  Tensor mask = options.mask;
  if (const Tensor own = mask_of_segments(call, options, scores.shape); own.defined()) {
    mask = mask.defined() ? logical_and(mask, own) : own;
  }
  if (mask.defined()) bias = bias.defined() ? where(mask, bias, kNoScore) : mask;
  if (!bias.defined()) return bias;
  InplaceVector<std::int64_t, kDimCountMax> dims;
  for (int dim = bias.shape().size(); dim < 4; ++dim) dims.push_back(1);
  dims.append_range(bias.shape());
  return reshape(bias, Shape(std::span<const std::int64_t>(dims)));
}

/// Returns, for each batch and head, the product of a[B,H,S,K] and b. It contracts K with the dim
/// `b_dim` of b.
Tensor product(Call& call, const Tensor& a, const Tensor& b, std::int64_t b_dim,
               SkipZeros skip_zeros) {
  const bool lowers = call.lowers(a, b);
  const ValueId lhs = call.value(lowers ? call.lowered(a) : a);
  return call.result(call->dot_general(lhs, call.value(lowers ? call.lowered(b) : b),
                                       {.lhs_batch = {0, 1},
                                        .rhs_batch = {0, 1},
                                        .lhs_contracting = {3},
                                        .rhs_contracting = {b_dim},
                                        .skip_zeros = skip_zeros}));
}
/// Returns the scores. Gradients skip each score whose cotangent is 0, such as that of a hidden
/// key, so that the key may be infinite or NaN.
Tensor scores_of(Call& call, const Tensor& q, const Tensor& k) {
  return product(call, q, k, 3, SkipZeros::cotangent);
}
/// Returns the weighted sum of values. The sum skips values whose weight is 0, so that these may be
/// infinite or NaN.
Tensor weighted(Call& call, const Tensor& weights, const Tensor& v) {
  return product(call, weights, v, 2, SkipZeros::lhs);
}

/// Computes attention with separate ops, because dropout is applied to the weights.
Tensor composed(Call& call, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias,
                const AttentionOptions& options, double scale) {
  Tensor scores = scores_of(call, q, k) * scale;
  if (bias.defined()) {
    const bool is_mask = bias.type().dtype == DType::pred;
    scores = where(is_mask ? bias : not_equal(bias, kNoScore), is_mask ? scores : scores + bias,
                   kNoScore);
  }
  if (options.causal) {
    const Shape places{scores.shape()[2], scores.shape()[3]};
    scores = where(less_equal(iota(places, 1), iota(places, 0)), scores, kNoScore);
  }
  Tensor weights;
  if (bias.defined()) {
    const Tensor none = equal(amax(scores, {-1}, true), kNoScore);  // the query sees no key
    weights = where(none, 0.0, softmax(where(none, 0.0, scores)));
  } else {
    weights = softmax(scores);
  }
  return weighted(call, dropout(weights, options.dropout), v);
}

/// The state of a softmax over the keys that were processed so far, and of the weighted sum of
/// their values.
struct Seen {
  Tensor most;   // [B,H,S,1], the largest score
  Tensor total;  // [B,H,S,1], the sum of exp(score - most)
  Tensor sum;    // [B,H,S,E], the sum of exp(score - most) * value
};

/// The queries of one chip. They attend to the keys of one chip after another.
class RingQueries {
 public:
  RingQueries(const Tensor& q, double scale, bool causal, const Tensor& chip,
              const std::source_location& loc)
      : q_(q),
        scale_(scale),
        causal_(causal),
        chip_(chip),
        loc_(loc),
        sums_(q.type().dtype == DType::f64 ? DType::f64 : DType::f32) {}

  Seen nothing(std::int64_t value_size) const {
    const Shape& shape = q_.shape();
    const Shape rows{shape[0], shape[1], shape[2], 1};
    return {.most = full(rows, kUnseen, sums_),
            .total = full(rows, 0, sums_),
            .sum = full({shape[0], shape[1], shape[2], value_size}, 0, sums_)};
  }

  /// Returns `before` with the keys and values of chip `source` added. Stores only these keys and
  /// values for the backward pass. Gradients treat `most` as a constant, because the final result
  /// doesn't depend on it.
  Seen with(const Seen& before, const Tensor& k, const Tensor& v, const Tensor& source) const {
    return checkpoint([&] {
      Call call("ring_attention", loc_);
      const Tensor keys = with_heads(k, q_.dim(1));
      Tensor scores = cast(scores_of(call, q_, keys), sums_) * scale_;
      if (causal_) scores = where(sees(keys.dim(2), source), scores, kUnseen);
      const Tensor most = maximum(before.most, stop_gradient(amax(scores, {-1}, true)));
      const Tensor fade = exp(before.most - most);
      const Tensor weights = exp(scores - most);
      const Tensor values = with_heads(v, q_.dim(1));
      const Tensor product = cast(weighted(call, cast(weights, v.type().dtype), values), sums_);
      return Seen{.most = most,
                  .total = before.total * fade + sum(weights, {-1}, true),
                  .sum = before.sum * fade + product};
    });
  }

 private:
  /// Returns for each pair of a query and a key whether the key is at the query's position or an
  /// earlier one.
  Tensor sees(std::int64_t num_keys, const Tensor& source) const {
    const Shape places{q_.dim(2), num_keys};
    const Tensor query = iota(places, 0) + chip_ * static_cast<double>(places[0]);
    const Tensor key = iota(places, 1) + source * static_cast<double>(places[1]);
    return less_equal(key, query);
  }

  const Tensor q_;
  const double scale_;
  const bool causal_;
  const Tensor chip_;
  const std::source_location loc_;
  const DType sums_;
};

/// Returns the positions for rope() as f64, in a shape that broadcasts to the halves of x's last
/// dim.
Tensor places_of(Call& call, const TensorType& x, std::int64_t half, const Tensor& positions) {
  const int last = x.shape.size() - 1;
  const std::int64_t length = x.shape[last - 1];
  const Tensor from_0 = iota({length, half}, 0, DType::f64);
  if (!positions.defined()) return from_0;
  const TensorType given = call.type(positions);
  if (given == TensorType{DType::i32, {}}) return from_0 + cast(positions, DType::f64);
  if (last < 2 || given != TensorType{DType::i32, {x.shape[0], length}}) {
    call.refuse("positions {} for {}: expected i32[], the first position{}",
                call.node(positions)->label(), x.to_string(),
                last < 2 ? "" : fmt::format(", or i32[{},{}]", x.shape[0], length));
  }
  InplaceVector<std::int64_t, kDimCountMax> dims;
  for (int dim = 0; dim < last; ++dim) dims.push_back(dim == 0 ? x.shape[0] : 1);
  dims[static_cast<std::size_t>(last - 1)] = length;
  dims.push_back(1);
  return reshape(cast(positions, DType::f64), Shape(std::span<const std::int64_t>(dims)));
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
  const Shape& shape = query.shape;
  const TensorType scores{query.dtype, {shape[0], shape[1], shape[2], call.type(k).shape[2]}};
  const Tensor bias = bias_of(call, options, scores);
  if (options.dropout > 0) return composed(call, q.tensor(), keys, values, bias, options, scale);
  const ValueId queries = call.value(q);
  const ValueId key = call.value(keys);
  const ValueId value = call.value(values);
  return call.result(call->attention(queries, key, value,
                                     {.causal = options.causal, .scale = scale},
                                     bias.defined() ? call.value(bias) : kNoId));
}

Tensor ring_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AxisNames& axes,
                      const RingAttentionOptions& options, std::source_location loc) {
  Call call("ring_attention", loc);
  if (call.lowers(q, k, v)) {
    return ring_attention(call.lowered(q), call.lowered(k), call.lowered(v), axes, options, loc);
  }
  const TensorType query = call.type(q);
  expect_attention(call, query, call.type(k), call.type(v), options.enable_gqa);
  const auto chips = static_cast<double>(axis_size(axes, loc));
  const Tensor own = axis_index(axes, loc);
  const RingQueries queries(
      vary(q, axes, loc),
      options.scale.value_or(1 / std::sqrt(static_cast<double>(query.shape[3]))), options.causal,
      own, loc);
  Seen seen = queries.with(queries.nothing(v.dim(3)), k, v, own);
  if (chips > 1) {
    const auto pass_on = [&](const std::tuple<Tensor, Tensor, Seen>& before, const Tensor& number) {
      const auto& [keys, values, so_far] = before;
      const Tensor k_here = ring_shift(keys, axes, 1, loc);
      const Tensor v_here = ring_shift(values, axes, 1, loc);
      const Tensor source = remainder(own + chips - number, chips);
      return std::pair(std::tuple(k_here, v_here, queries.with(so_far, k_here, v_here, source)),
                       std::tuple<>());
    };
    const Tensor numbers = iota({static_cast<std::int64_t>(chips) - 1}, 0) + 1;
    seen = std::get<2>(
        scan(pass_on, std::tuple(vary(k, axes, loc), vary(v, axes, loc), seen), numbers).carry);
  }
  return cast(seen.sum / seen.total, query.dtype);
}

Tensor rope(Operand x, double base, const Tensor& positions) {
  Call call("rope", x.loc());
  if (call.widens(x)) return rope(call.widened(x), base, positions);
  const TensorType type = call.type(x);
  const int last = type.shape.size() - 1;
  if (last < 1 || type.shape[last] % 2 != 0 || !is_floating(type.dtype) || !(base > 0)) {
    call.refuse(
        "{} and base {} don't fit: expected floating [...,S,K] with even K, and a base above 0",
        call.node(x)->label(), base);
  }
  const std::int64_t half = type.shape[last] / 2;
  const Tensor rates = exp(iota({half}, 0, DType::f64) * (-std::log(base) / double(half)));
  const Tensor angles = places_of(call, type, half, positions) * rates;
  const Tensor c = cast(cos(angles), type.dtype);
  const Tensor s = cast(sin(angles), type.dtype);
  const Tensor first = slice(x, last, 0, half);
  const Tensor second = slice(x, last, half, 2 * half);
  return cat({first * c - second * s, second * c + first * s}, last);
}

}  // namespace weft
