#include <weft/spmd/program/evaluate_composite.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <weft/spmd/program/composite.hpp>

namespace weft {
namespace {

using Row = std::span<const double>;

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

double dot(Row a, Row b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

double total(Row x) { return std::accumulate(x.begin(), x.end(), 0.0); }

Elements log_softmax(Row x) {
  double top = neutral(ReduceKind::max, DType::f64);
  for (const double element : x) top = combine(ReduceKind::max, top, element);
  double sum = 0;
  for (const double element : x) sum += std::exp(element - top);
  Elements result;
  for (const double element : x) result.push_back(element - top - std::log(sum));
  return result;
}

Elements softmax(Row x) {
  Elements result = log_softmax(x);
  for (double& element : result) element = std::exp(element);
  return result;
}

/// y_i (g_i - sum of g y).
Elements softmax_grad(Row y, Row g) {
  const double along = dot(y, g);
  Elements result;
  for (std::size_t i = 0; i < y.size(); ++i) result.push_back(y[i] * (g[i] - along));
  return result;
}

/// g_i - e^y_i (sum of g).
Elements log_softmax_grad(Row y, Row g) {
  const double sum = total(g);
  Elements result;
  for (std::size_t i = 0; i < y.size(); ++i) result.push_back(g[i] - std::exp(y[i]) * sum);
  return result;
}

struct Normalized {
  Elements y;
  double scale = 1;  ///< of the centered row
};

Normalized normalize(Row x, const Normalization& normalization) {
  const auto size = static_cast<double>(x.size());
  const double mean = normalization.center ? total(x) / size : 0;
  Normalized result;
  for (const double element : x) result.y.push_back(element - mean);
  result.scale = 1 / std::sqrt(dot(result.y, result.y) / size + normalization.eps);
  for (double& element : result.y) element *= result.scale;
  return result;
}

/// scale (g_i - mean of g - y_i (mean of g y)), the first mean where x was centered.
Elements normalize_grad(Row x, Row g, const Normalization& normalization) {
  const auto size = static_cast<double>(x.size());
  const Normalized normalized = normalize(x, normalization);
  const double mean = normalization.center ? total(g) / size : 0;
  const double along = dot(g, normalized.y) / size;
  Elements result;
  for (std::size_t i = 0; i < x.size(); ++i) {
    result.push_back(normalized.scale * (g[i] - mean - normalized.y[i] * along));
  }
  return result;
}

Elements row_op(OpKind kind, std::span<const std::int64_t> attrs, Row a, Row b) {
  switch (kind) {
    case OpKind::softmax: return softmax(a);
    case OpKind::log_softmax: return log_softmax(a);
    case OpKind::softmax_grad: return softmax_grad(a, b);
    case OpKind::log_softmax_grad: return log_softmax_grad(a, b);
    case OpKind::normalize: return normalize(a, normalization_of(attrs)).y;
    default: break;
  }
  WEFT_CHECK(kind == OpKind::normalize_grad, to_string(kind));
  return normalize_grad(a, b, normalization_of(attrs));
}

/// `g` is empty for the losses themselves, one for each row; else their cotangent.
Elements cross_entropy(const Elements& x, const Elements& labels, const Elements& g,
                       std::size_t classes) {
  Elements result;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const Elements rates = log_softmax(Row(x).subspan(row * classes, classes));
    const double label = labels[row];
    const bool is_class = label >= 0 && label < static_cast<double>(classes);
    if (g.empty()) {
      result.push_back(is_class ? -rates[static_cast<std::size_t>(label)] : 0);
      continue;
    }
    for (std::size_t i = 0; i < classes; ++i) {
      const double target = static_cast<double>(i) == label ? 1 : 0;
      result.push_back(is_class ? (std::exp(rates[i]) - target) * g[row] : 0);
    }
  }
  return result;
}

/// Rows of the operands, by head (of all batches) and place.
struct Heads {
  std::int64_t heads, queries, keys, key_size, value_size;
  AttentionForm form;
  std::int64_t first_query;

  Row row(const Elements& of, std::int64_t rows, std::int64_t size, std::int64_t head,
          std::int64_t place) const {
    return Row(of).subspan(index((head * rows + place) * size), index(size));
  }
  /// What query i gives to each key it sees.
  Elements weights(const Elements& q, const Elements& k, std::int64_t head, std::int64_t i) const {
    const std::int64_t seen = form.causal ? std::min(keys, first_query + i + 1) : keys;
    Elements scores;
    for (std::int64_t j = 0; j < seen; ++j) {
      scores.push_back(form.scale *
                       dot(row(q, queries, key_size, head, i), row(k, keys, key_size, head, j)));
    }
    return softmax(scores);
  }
};

void add_scaled(Elements& to, std::int64_t at, Row x, double scale) {
  for (std::size_t i = 0; i < x.size(); ++i) to[index(at) + i] += x[i] * scale;
}

Elements attention(const Heads& h, std::span<const Elements* const> operands) {
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

Elements attention_grad(const Heads& h, std::span<const Elements* const> operands) {
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
        of_weights.push_back(dot(cotangent, h.row(v, h.keys, size, head, key)));
      }
      const Elements of_scores = softmax_grad(weights, of_weights);
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

}  // namespace

Elements evaluate_composite(const Program& program, OpId op,
                            std::span<const Elements* const> operands, std::int64_t first_query) {
  const OpKind kind = program.kind(op);
  const auto attrs = program.op_attrs(op);
  const Shape& shape = program.shape(program.op_operands(op)[0]);
  if (kind == OpKind::attention || kind == OpKind::attention_grad) {
    const Shape& v = program.shape(program.op_operands(op)[2]);
    const Heads heads{shape[0] * shape[1],      shape[2],   v[2], shape[3], v[3],
                      attention_form_of(attrs), first_query};
    return kind == OpKind::attention ? attention(heads, operands) : attention_grad(heads, operands);
  }
  const auto size = index(shape[shape.size() - 1]);
  if (kind == OpKind::cross_entropy || kind == OpKind::cross_entropy_grad) {
    const bool is_grad = kind == OpKind::cross_entropy_grad;
    return cross_entropy(*operands[0], *operands[1], is_grad ? *operands[2] : Elements{}, size);
  }
  const Row a(*operands[0]);
  const Row b(*operands.back());
  Elements result;
  for (std::size_t at = 0; at < a.size(); at += size) {
    const Elements row = row_op(kind, attrs, a.subspan(at, size), b.subspan(at, size));
    result.insert(result.end(), row.begin(), row.end());
  }
  return result;
}

}  // namespace weft
