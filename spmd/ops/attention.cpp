/// Defines the attention ops.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "spmd/ops/attribute_views.hpp"
#include "spmd/ops/elements.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/ops/softmax.hpp"

namespace weft {
namespace {

using infer::reject;

// The following functions infer the type of an op's result.

/// The numbers of operands that attention and attention_grad have before the bias.
constexpr std::size_t kForward = 3;
constexpr std::size_t kBackward = 5;

void expect_bias(const OpSignature& op, const TensorType& bias, const TensorType& scores) {
  bool fits = bias.shape.size() == 4 && (bias.dtype == DType::pred || bias.dtype == scores.dtype);
  for (int dim = 0; fits && dim < 4; ++dim) {
    fits = bias.shape[dim] == 1 || bias.shape[dim] == scores.shape[dim];
  }
  if (!fits) {
    reject(op, "the bias {} must be pred or {}, with dims of 1 or those of the scores {}",
           bias.to_string(), to_string(scores.dtype), scores.to_string());
  }
}

/// Checks the operands and returns {B, H, S, T, K, E}. `bias` is the index of the bias operand.
std::array<std::int64_t, 6> expect_heads(const OpSignature& op, std::size_t bias) {
  const TensorType& q = op.operands[0];
  const TensorType& k = op.operands[1];
  const TensorType& v = op.operands[2];
  bool fits = is_floating(q.dtype) && q.dtype == k.dtype && q.dtype == v.dtype;
  for (const TensorType* type : {&q, &k, &v}) fits = fits && type->shape.size() == 4;
  const auto same = [](const TensorType& a, const TensorType& b, std::array<int, 3> dims) {
    return std::ranges::all_of(dims, [&](int dim) { return a.shape[dim] == b.shape[dim]; });
  };
  if (!fits || !same(q, k, {0, 1, 3}) || !same(k, v, {0, 1, 2})) {
    reject(op, "takes [B,H,S,K], [B,H,T,K] and [B,H,T,E] of one floating dtype");
  }
  if (k.shape[2] == 0 || k.shape[3] == 0) reject(op, "there are no keys, or they are empty");
  const double scale = attention_form_of(op.attrs).scale;
  if (!std::isfinite(scale)) reject(op, "the scale is {}; it must be finite", scale);
  const auto [b, h, s, t] = std::array{q.shape[0], q.shape[1], q.shape[2], k.shape[2]};
  if (op.operands.size() > bias) expect_bias(op, op.operands[bias], {q.dtype, {b, h, s, t}});
  return {b, h, s, t, q.shape[3], v.shape[3]};
}

TensorType attention_type(const OpSignature& op) {
  infer::expect_atom_lists(op, op.attrs.subspan(2));
  const auto [b, h, s, t, k, e] = expect_heads(op, kForward);
  return {op.operands[0].dtype, {b, h, s, e}};
}

TensorType attention_grad_type(const OpSignature& op) {
  const auto [b, h, s, t, k, e] = expect_heads(op, kBackward);
  const TensorType y{op.operands[0].dtype, {b, h, s, e}};
  if (op.operands[3] != y || op.operands[4] != y) {
    reject(op, "the result and its cotangent must be {}", y.to_string());
  }
  if (k != e) reject(op, "keys of {} and values of {} elements can't be in one tensor", k, e);
  return {y.dtype, {b, h, s + 2 * t, k}};
}

// The following functions return the factor rules of ops.

/// Returns the rule of `text`, which has only the operands before the bias, with the bias added.
/// Dims of the bias that aren't broadcast get the factors of q. The last dim, keys, has no factor,
/// because no chip has only a part of the keys.
FactorRule rule_with_bias(const RuleText& text, const Program& program, OpId op, std::size_t bias) {
  const auto operands = program.op_operands(op);
  InplaceVector<const Shape*, RuleText::kTensorCountMax> shapes;
  for (const ValueId operand : operands.first(bias)) shapes.push_back(&program.shape(operand));
  shapes.push_back(&program.shape(program.result(op)));
  FactorRule rule = to_factor_rule(text, std::span(shapes), true);
  if (operands.size() == bias) return rule;
  const Shape& shape = program.shape(operands[bias]);
  InplaceVector<DimFactors, kDimCountMax> dims(4);
  for (int dim = 0; dim < 3; ++dim) {
    const auto d = static_cast<std::size_t>(dim);
    if (shape[dim] == (*shapes[0])[dim]) dims[d] = rule.dims[0][d];
  }
  rule.dims.insert(rule.dims.end() - 1, dims);
  return rule;
}

FactorRule attention_rule(const Program& program, OpId op) {
  static constexpr RuleText kText = own_rule("b h s k, b h t l, b h u e -> b h s f");
  return rule_with_bias(kText, program, op, kForward);
}

/// Returns a rule in which S can't be sharded. A chip with some of the queries would have complete
/// cotangents of these, but only partial sums for keys and values; one result can't contain both.
FactorRule attention_grad_rule(const Program& program, OpId op) {
  static constexpr RuleText kText =
      own_rule("b h s k, b h t l, b h u e, b h s f, b h s i -> b h o p need_replication={s}");
  return rule_with_bias(kText, program, op, kBackward);
}

// The following functions express ops by primitives.

/// Returns the product of a and b per batch and head, summed over dims `a_dim` and `b_dim`.
ValueId product(Builder& builder, ValueId a, std::int64_t a_dim, ValueId b, std::int64_t b_dim,
                SkipZeros skip_zeros) {
  return builder.dot_general(a, b,
                             {.lhs_batch = {0, 1},
                              .rhs_batch = {0, 1},
                              .lhs_contracting = {a_dim},
                              .rhs_contracting = {b_dim},
                              .skip_zeros = skip_zeros});
}

constexpr double kNoScore = -std::numeric_limits<double>::infinity();

ValueId add_bias(Builder& builder, ValueId scores, ValueId bias) {
  const TensorType type = builder.type(scores);
  const ValueId all = builder.broadcast_in_dim(bias, type.shape, consecutive_dims(0, 4));
  const ValueId none = builder.constant(kNoScore, type);
  if (builder.type(bias).dtype == DType::pred) return builder.select(all, scores, none);
  const ValueId is_hidden = builder.compare(CompareDirection::eq, all, none);  // NaN scores too
  return builder.select(is_hidden, none, builder.binary(OpKind::add, scores, all));
}

/// Returns the softmax of the scores. A query whose scores are all -inf gets zeros, and its
/// gradient is zero.
ValueId biased_weights(Builder& builder, ValueId scores) {
  const TensorType type = builder.type(scores);
  const ValueId most = builder.reduce(ReduceKind::max, scores, std::array<std::int64_t, 1>{3});
  const ValueId is_none =
      builder.compare(CompareDirection::eq, most, builder.constant(kNoScore, builder.type(most)));
  const ValueId none = builder.broadcast_in_dim(is_none, type.shape, consecutive_dims(0, 3));
  const ValueId zero = builder.constant(0, type);
  const ValueId weights = softmax_as_primitives(builder, builder.select(none, zero, scores));
  return builder.select(none, zero, weights);
}

/// Returns the softmax of the scores, [B,H,S,T]. `bias` may be kNoId.
ValueId attention_weights(Builder& builder, ValueId q, ValueId k, const AttentionForm& form,
                          ValueId bias) {
  // A hidden key may be infinite or NaN, so its score passes no cotangent to the key or the query.
  ValueId scores = product(builder, q, 3, k, 3, SkipZeros::cotangent);
  const TensorType type = builder.type(scores);
  scores = builder.binary(OpKind::multiply, scores, builder.constant(form.scale, type));
  if (bias != kNoId) scores = add_bias(builder, scores, bias);
  if (form.causal) {
    const TensorType place{DType::i32, type.shape};
    const ValueId unseen =
        builder.compare(CompareDirection::gt, builder.iota(place, 3), builder.iota(place, 2));
    scores = builder.select(unseen, builder.constant(kNoScore, type), scores);
  }
  return bias == kNoId ? softmax_as_primitives(builder, scores) : biased_weights(builder, scores);
}

/// Returns the operand at `index`, the bias; kNoId if the op has no bias.
ValueId bias_of(std::span<const ValueId> operands, std::size_t index) {
  return operands.size() > index ? operands[index] : kNoId;
}

ValueId attention_primitives(Builder& builder, std::span<const ValueId> operands, Words words) {
  const ValueId weights = attention_weights(builder, operands[0], operands[1],
                                            attention_form_of(words), bias_of(operands, kForward));
  return product(builder, weights, 3, operands[2], 2, SkipZeros::lhs);
}

ValueId attention_grad_primitives(Builder& builder, std::span<const ValueId> operands,
                                  Words words) {
  const AttentionForm form = attention_form_of(words);
  const auto q = operands[0];
  const auto k = operands[1];
  const auto v = operands[2];
  const auto g = operands[4];
  const ValueId weights = attention_weights(builder, q, k, form, bias_of(operands, kBackward));
  const TensorType type = builder.type(weights);
  const ValueId zero = builder.constant(0, type);
  const ValueId of_weights = builder.select(builder.compare(CompareDirection::eq, weights, zero),
                                            zero, product(builder, g, 3, v, 3, SkipZeros::never));
  const ValueId of_scores =
      builder.binary(OpKind::multiply, softmax_grad_as_primitives(builder, weights, of_weights),
                     builder.constant(form.scale, type));
  const std::array parts{product(builder, of_scores, 3, k, 2, SkipZeros::lhs),
                         product(builder, of_scores, 2, q, 2, SkipZeros::lhs),
                         product(builder, weights, 2, g, 2, SkipZeros::lhs)};
  return builder.concatenate(parts, 2);
}

// The following functions append the gradients of ops.

ValueId attention_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  const auto& in = op.operands;
  const Shape q = builder.type(in[0]).shape;
  const Shape v = builder.type(in[2]).shape;
  if (q[3] != v[3] || index == kForward) return kNoId;
  // The operands' cotangents are slices of one result. canonicalize merges the equal ops.
  const ValueId all = builder.attention_grad(in[0], in[1], in[2], op.result, g,
                                             attention_form_of(op.attrs), bias_of(in, kForward));
  const std::int64_t begin = index == 0 ? 0 : q[2] + (index == 1 ? 0 : v[2]);
  const std::int64_t end = begin + (index == 0 ? q[2] : v[2]);
  return builder.slice(all, std::array<std::int64_t, 4>{0, 0, begin, 0},
                       std::array<std::int64_t, 4>{q[0], q[1], end, q[3]},
                       std::array<std::int64_t, 4>{1, 1, 1, 1});
}

// The following functions compute the values of ops, for the reference interpreters.

using Row = std::span<const double>;

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

double dot(Row a, Row b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

/// The sizes of the operands, and access to their rows by head (of any batch) and position.
struct Heads {
  std::int64_t heads, queries, keys, key_size, value_size;
  AttentionForm form;
  std::int64_t first_query;
  const Elements* bias;  ///< null if there is no bias
  TensorType bias_type;
  std::int64_t heads_of_batch;

  Row row(const Elements& of, std::int64_t rows, std::int64_t size, std::int64_t head,
          std::int64_t place) const {
    return Row(of).subspan(index((head * rows + place) * size), index(size));
  }
  double biased(double score, std::int64_t head, std::int64_t i, std::int64_t j) const {
    if (bias == nullptr) return score;
    const std::array place{head / heads_of_batch, head % heads_of_batch, i, j};
    std::int64_t at = 0;
    for (int dim = 0; dim < 4; ++dim) {
      const std::int64_t size = bias_type.shape[dim];
      at = at * size + (size == 1 ? 0 : place[static_cast<std::size_t>(dim)]);
    }
    const double element = (*bias)[index(at)];
    if (bias_type.dtype != DType::pred) return element == kNoScore ? kNoScore : score + element;
    return element != 0 ? score : kNoScore;
  }
  /// Returns the weights that query i gives to the keys that it sees.
  Elements weights(const Elements& q, const Elements& k, std::int64_t head, std::int64_t i) const {
    const std::int64_t seen = form.causal ? std::min(keys, first_query + i + 1) : keys;
    Elements scores;
    for (std::int64_t j = 0; j < seen; ++j) {
      const double score =
          form.scale * dot(row(q, queries, key_size, head, i), row(k, keys, key_size, head, j));
      scores.push_back(biased(score, head, i, j));
    }
    const bool none = std::ranges::all_of(scores, [](double score) { return score == kNoScore; });
    return bias != nullptr && none ? Elements(scores.size(), 0.0) : softmax_of(scores);
  }
};

void add_scaled(Elements& to, std::int64_t at, Row x, double scale) {
  if (scale == 0) return;  // a hidden element may be infinite or NaN
  for (std::size_t i = 0; i < x.size(); ++i) to[index(at) + i] += x[i] * scale;
}

Heads heads_of(const Evaluation& e, std::size_t bias) {
  const Shape& q = e.operand_shape(0);
  const Shape& v = e.operand_shape(2);
  return {q[0] * q[1],
          q[2],
          v[2],
          q[3],
          v[3],
          attention_form_of(e.attrs()),
          e.place.empty() ? 0 : e.place[0].first,
          e.operands.size() > bias ? e.operands[bias] : nullptr,
          e.operands.size() > bias ? e.operand_type(bias) : TensorType{},
          q[1]};
}

Elements attention_elements(const Evaluation& e) {
  const Heads h = heads_of(e, kForward);
  const auto& operands = e.operands;
  const Elements& v = *operands[2];
  Elements result(index(h.heads * h.queries * h.value_size), 0);
  for (std::int64_t head = 0; head < h.heads; ++head) {
    for (std::int64_t i = 0; i < h.queries; ++i) {
      const Elements weights = h.weights(*operands[0], *operands[1], head, i);
      for (std::size_t j = 0; j < weights.size(); ++j) {
        add_scaled(result, (head * h.queries + i) * h.value_size,
                   h.row(v, h.keys, h.value_size, head, static_cast<std::int64_t>(j)), weights[j]);
      }
    }
  }
  return result;
}

Elements attention_grad_elements(const Evaluation& e) {
  const Heads h = heads_of(e, kBackward);
  const auto& operands = e.operands;
  const auto& [q, k, v, g] = std::tie(*operands[0], *operands[1], *operands[2], *operands[4]);
  const std::int64_t size = h.key_size;
  const std::int64_t rows = h.queries + 2 * h.keys;
  Elements result(index(h.heads * rows * size), 0);
  for (std::int64_t head = 0; head < h.heads; ++head) {
    for (std::int64_t i = 0; i < h.queries; ++i) {
      const Row query = h.row(q, h.queries, size, head, i);
      const Row cotangent = h.row(g, h.queries, size, head, i);
      const Elements weights = h.weights(q, k, head, i);
      Elements of_weights;
      for (std::size_t j = 0; j < weights.size(); ++j) {
        const auto key = static_cast<std::int64_t>(j);
        const bool is_seen = weights[j] != 0;  // a hidden key may be infinite or NaN
        of_weights.push_back(is_seen ? dot(cotangent, h.row(v, h.keys, size, head, key)) : 0);
      }
      const Elements of_scores = softmax_grad_of(weights, of_weights);
      for (std::size_t j = 0; j < weights.size(); ++j) {
        const auto key = static_cast<std::int64_t>(j);
        const std::int64_t first = head * rows;
        const double slope = of_scores[j] * h.form.scale;
        add_scaled(result, (first + i) * size, h.row(k, h.keys, size, head, key), slope);
        add_scaled(result, (first + h.queries + key) * size, query, slope);
        add_scaled(result, (first + h.queries + h.keys + key) * size, cotangent, weights[j]);
      }
    }
  }
  return result;
}

/// Returns the number of visible pairs of a query and a key, as a mean over `chips`.
std::int64_t pairs_of(const Program& program, OpId op, std::int64_t chips) {
  const Shape& q = program.shape(program.op_operands(op)[0]);
  const std::int64_t keys = program.shape(program.op_operands(op)[1])[2];
  const std::int64_t heads = q[0] * q[1];
  if (!attention_form_of(program.op_attrs(op)).causal) return heads * q[2] * keys;
  const std::int64_t queries = q[2] * chips;
  const std::int64_t rising = std::min(queries, keys);  // query i sees min(i + 1, keys)
  return heads * (rising * (rising + 1) / 2 + (queries - rising) * keys) / chips;
}

/// Counts the flops of two products: queries with keys, and weights with values.
std::int64_t attention_flops(const Program& program, OpId op, const Mesh& mesh) {
  const auto atoms = AtomList::from_bits(static_cast<std::uint64_t>(program.op_attrs(op)[2]));
  const std::int64_t key = program.shape(program.op_operands(op)[1])[3];
  const std::int64_t value = program.shape(program.op_operands(op)[2])[3];
  return 2 * pairs_of(program, op, mesh.count(atoms)) * (key + value);
}
/// Counts the flops of five products: one for the weights, again, and four for cotangents.
std::int64_t attention_grad_flops(const Program& program, OpId op, const Mesh&) {
  const std::int64_t key = program.shape(program.op_operands(op)[1])[3];
  const std::int64_t value = program.shape(program.op_operands(op)[2])[3];
  return 2 * pairs_of(program, op, 1) * (3 * key + 2 * value);
}

// In a chip's program, `atoms` shard S: the part begins at query index_in(atoms) * S of the whole.
constexpr Attr kAttention[] = {flag("causal"), number("scale"),
                               atoms().atoms_of(AttrDim::kResult, 2)};
constexpr Attr kAttentionGrad[] = {flag("causal"), number("scale")};

}  // namespace

constexpr OpRow rows::attention{
    .doc =
        "(q[B,H,S,K], k[B,H,T,K], v[B,H,T,E]): softmax(scale q k^T) v, as [B,H,S,E]. If causal, "
        "query i sees keys 0..i. A bias [B|1,H|1,S|1,T|1] of pred marks the keys that are seen; "
        "any other bias is added to scale q k^T. A query without a score above -inf gives zeros. "
        "The gradient of the bias is that of the decomposition.",
    .operands = operands(kForward, kForward + 1),
    .attrs = Attrs(kAttention),
    .infer = attention_type,
    .rule = Rule(attention_rule),
    .spreads = Spreads::later,
    .resized = none,
    .pads = Pads::yes,
    .linear = none,
    .gradient = attention_cotangent,
    .evaluate = attention_elements,
    .decompose = attention_primitives,
    .cost = attention_flops,
    .traits = Traits{},
};

constexpr OpRow rows::attention_grad{
    .doc =
        "(q, k, v, result, its cotangent), K = E: the cotangents of q, k and v, joined as "
        "[B,H,S+T+T,K]. A bias works as in attention.",
    .operands = operands(kBackward, kBackward + 1),
    .attrs = Attrs(kAttentionGrad),
    .infer = attention_grad_type,
    .rule = Rule(attention_grad_rule),
    .spreads = Spreads::later,
    .resized = none,
    .pads = Pads::yes,
    .linear = none,
    .gradient = by_decomposition,
    .evaluate = attention_grad_elements,
    .decompose = attention_grad_primitives,
    .cost = attention_grad_flops,
    .traits = Traits{},
};

}  // namespace weft
