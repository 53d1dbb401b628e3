#include <weft/spmd/program/evaluate.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <weft/spmd/program/custom_call.hpp>
#include <weft/spmd/program/element.hpp>
#include <weft/spmd/program/evaluate_composite.hpp>
#include <weft/spmd/program/evaluate_index.hpp>
#include <weft/spmd/program/evaluate_window.hpp>
#include <weft/spmd/program/infer.hpp>

namespace weft {
namespace {

using Dims = std::span<const std::int64_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// `values[which[0]], values[which[1]], ...`
std::vector<std::int64_t> pick(Dims values, Dims which) {
  std::vector<std::int64_t> picked;
  for (const std::int64_t i : which) picked.push_back(values[static_cast<std::size_t>(i)]);
  return picked;
}

double to_dtype(DType dtype, double x) {
  if (is_floating(dtype)) return x;
  std::array<std::byte, 8> bytes{};
  store_element(dtype, x, bytes.data());
  return load_element(dtype, bytes.data());
}

double unary(OpKind kind, double x) {
  switch (kind) {
    case OpKind::negate: return -x;
    case OpKind::sign: return x > 0 ? 1 : x < 0 ? -1 : x;
    case OpKind::abs: return std::abs(x);
    case OpKind::exponential: return std::exp(x);
    case OpKind::log: return std::log(x);
    case OpKind::tanh: return std::tanh(x);
    case OpKind::sine: return std::sin(x);
    case OpKind::cosine: return std::cos(x);
    case OpKind::logistic: return 1 / (1 + std::exp(-x));
    case OpKind::sqrt: return std::sqrt(x);
    case OpKind::rsqrt: return 1 / std::sqrt(x);
    default: WEFT_CHECK(false, to_string(kind)); return kNaN;
  }
}

double binary(OpKind kind, double a, double b) {
  switch (kind) {
    case OpKind::add: return a + b;
    case OpKind::subtract: return a - b;
    case OpKind::multiply: return a * b;
    case OpKind::divide: return a / b;
    case OpKind::maximum: return combine(ReduceKind::max, a, b);
    case OpKind::minimum: return combine(ReduceKind::min, a, b);
    case OpKind::power: return std::pow(a, b);
    case OpKind::logical_and: return a != 0 && b != 0 ? 1 : 0;
    default: WEFT_CHECK(false, to_string(kind)); return kNaN;
  }
}

bool compare(CompareDirection direction, double a, double b) {
  switch (direction) {
    case CompareDirection::eq: return a == b;
    case CompareDirection::ne: return a != b;
    case CompareDirection::lt: return a < b;
    case CompareDirection::le: return a <= b;
    case CompareDirection::gt: return a > b;
    case CompareDirection::ge: return a >= b;
  }
  return false;
}

Elements constant(const Program& program, OpId op, const TensorType& type) {
  const Dims attrs = program.op_attrs(op);
  const std::byte* bytes = program.const_pool.data() + attrs[0];
  const std::int64_t size = byte_size(type.dtype);
  const std::int64_t step = attrs[1] == type.bytes() ? size : 0;
  Elements result(static_cast<std::size_t>(type.num_elements()));
  for (double& element : result) {
    element = load_element(type.dtype, bytes);
    bytes += step;
  }
  return result;
}

Elements iota(const Shape& shape, std::int64_t dim) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(shape.size()), 0);
  strides[static_cast<std::size_t>(dim)] = 1;
  const std::vector<std::int64_t> indices = offsets(shape, strides);
  return {indices.begin(), indices.end()};
}

Elements broadcast(const Elements& x, const Shape& from, const Shape& to, Dims dims) {
  const std::vector<std::int64_t> from_strides = row_major_strides(from);
  std::vector<std::int64_t> strides(static_cast<std::size_t>(to.size()), 0);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const bool expands = from[static_cast<int>(i)] == 1;
    strides[static_cast<std::size_t>(dims[i])] = expands ? 0 : from_strides[i];
  }
  return take(x, offsets(to, strides));
}

Elements slice(const Elements& x, const Shape& from, const Shape& to, Dims attrs) {
  const auto [start, limit, stride] = triples(attrs);
  return take(x, places(from, to, start, stride));
}

Elements pad(const Elements& x, double padding, const Shape& from, const Shape& to, Dims attrs) {
  const auto [low, high, interior] = triples(attrs);
  std::vector<std::int64_t> stride(interior.begin(), interior.end());
  for (std::int64_t& step : stride) ++step;
  Elements result(static_cast<std::size_t>(to.num_elements()), padding);
  const std::vector<std::int64_t> where = places(to, from, low, stride);
  for (std::size_t i = 0; i < x.size(); ++i) result[static_cast<std::size_t>(where[i])] = x[i];
  return result;
}

Elements concatenate(const Program& program, OpId op, std::span<const Elements* const> operands) {
  const Shape& to = program.shape(program.result(op));
  const auto dim = static_cast<std::size_t>(program.op_attrs(op)[0]);
  std::vector<std::int64_t> start(static_cast<std::size_t>(to.size()), 0);
  const std::vector<std::int64_t> stride(start.size(), 1);
  Elements result(static_cast<std::size_t>(to.num_elements()));
  for (std::size_t part = 0; part < operands.size(); ++part) {
    const Shape& shape = program.shape(program.op_operands(op)[part]);
    const std::vector<std::int64_t> where = places(to, shape, start, stride);
    for (std::size_t i = 0; i < where.size(); ++i) {
      result[static_cast<std::size_t>(where[i])] = (*operands[part])[i];
    }
    start[dim] += shape[static_cast<int>(dim)];
  }
  return result;
}

Elements reverse(const Elements& x, const Shape& shape, Dims dims) {
  const std::vector<std::int64_t> strides = row_major_strides(shape);
  std::vector<std::int64_t> backward = strides;
  std::int64_t last = 0;
  for (const std::int64_t dim : dims) {
    const auto d = static_cast<std::size_t>(dim);
    last += (shape[static_cast<int>(dim)] - 1) * strides[d];
    backward[d] = -strides[d];
  }
  std::vector<std::int64_t> where = offsets(shape, backward);
  for (std::int64_t& place : where) place += last;
  return take(x, where);
}

Elements dot(const Elements& lhs, const Elements& rhs, const Shape& lhs_shape,
             const Shape& rhs_shape, Dims attrs) {
  const DotDimsView dims = dot_dims(attrs);
  const auto side = [](const Shape& shape, Dims which) {
    return offsets(pick(shape, which), pick(row_major_strides(shape), which));
  };
  const auto lhs_batch = side(lhs_shape, dims.lhs_batch);
  const auto rhs_batch = side(rhs_shape, dims.rhs_batch);
  const auto lhs_contracting = side(lhs_shape, dims.lhs_contracting);
  const auto rhs_contracting = side(rhs_shape, dims.rhs_contracting);
  const auto lhs_free =
      side(lhs_shape, free_dims(lhs_shape.size(), dims.lhs_batch, dims.lhs_contracting));
  const auto rhs_free =
      side(rhs_shape, free_dims(rhs_shape.size(), dims.rhs_batch, dims.rhs_contracting));

  Elements result;
  result.reserve(lhs_batch.size() * lhs_free.size() * rhs_free.size());
  for (std::size_t b = 0; b < lhs_batch.size(); ++b) {
    for (const std::int64_t m : lhs_free) {
      for (const std::int64_t n : rhs_free) {
        double sum = 0;
        for (std::size_t k = 0; k < lhs_contracting.size(); ++k) {
          sum += lhs[static_cast<std::size_t>(lhs_batch[b] + m + lhs_contracting[k])] *
                 rhs[static_cast<std::size_t>(rhs_batch[b] + n + rhs_contracting[k])];
        }
        result.push_back(sum);
      }
    }
  }
  return result;
}

Elements reduce(const Elements& x, const TensorType& type, Dims attrs) {
  const auto kind = static_cast<ReduceKind>(attrs[0]);
  const Dims dropped = attrs.subspan(1);
  const DimList kept = free_dims(type.shape.size(), {}, dropped);
  const std::vector<std::int64_t> strides = row_major_strides(type.shape);
  const auto inner = offsets(pick(type.shape, dropped), pick(strides, dropped));
  Elements result;
  for (const std::int64_t first : offsets(pick(type.shape, kept), pick(strides, kept))) {
    double total = neutral(kind, type.dtype);
    for (const std::int64_t offset : inner) {
      total = combine(kind, total, x[static_cast<std::size_t>(first + offset)]);
    }
    result.push_back(total);
  }
  return result;
}

Elements elementwise(const Program& program, OpId op, std::span<const Elements* const> operands) {
  const OpKind kind = program.kind(op);
  const DType dtype = program.type(program.result(op)).dtype;
  Elements result(operands[0]->size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double x = (*operands[0])[i];
    if (kind == OpKind::is_finite) {
      result[i] = std::isfinite(x) ? 1 : 0;
    } else if (kind == OpKind::convert) {
      result[i] = to_dtype(dtype, x);
    } else if (is_unary(kind)) {
      result[i] = unary(kind, x);
    } else if (kind == OpKind::compare) {
      const auto direction = static_cast<CompareDirection>(program.op_attrs(op)[0]);
      result[i] = compare(direction, x, (*operands[1])[i]) ? 1 : 0;
    } else if (kind == OpKind::select) {
      result[i] = (*operands[x != 0 ? 1 : 2])[i];
    } else {
      const double y = binary(kind, x, (*operands[1])[i]);
      result[i] = is_floating(dtype) ? y : std::trunc(y);
    }
  }
  return result;
}

/// By the op's own kernel, on elements of the dtypes that the program has.
Elements custom(const Program& program, OpId op, std::span<const Elements* const> operands) {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<const std::byte*> places;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const TensorType& type = program.type(program.op_operands(op)[i]);
    std::byte* element = bytes.emplace_back(static_cast<std::size_t>(type.bytes())).data();
    places.push_back(element);
    for (const double value : *operands[i]) {
      store_element(type.dtype, value, element);
      element += byte_size(type.dtype);
    }
  }
  const TensorType& type = program.type(program.result(op));
  std::vector<std::byte> made(static_cast<std::size_t>(type.bytes()));
  BoundCustomCall(program, op).run(places, made.data());
  Elements result(static_cast<std::size_t>(type.num_elements()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::size_t offset = i * static_cast<std::size_t>(byte_size(type.dtype));
    result[i] = load_element(type.dtype, made.data() + offset);
  }
  return result;
}

}  // namespace

std::vector<std::int64_t> row_major_strides(const Shape& shape) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(shape.size()));
  std::int64_t stride = 1;
  for (int dim = shape.size(); dim-- > 0;) {
    strides[static_cast<std::size_t>(dim)] = stride;
    stride *= shape[dim];
  }
  return strides;
}

std::vector<std::int64_t> offsets(Dims sizes, Dims strides) {
  std::vector<std::int64_t> result{0};
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
    std::vector<std::int64_t> next;
    next.reserve(result.size() * static_cast<std::size_t>(sizes[dim]));
    for (const std::int64_t offset : result) {
      for (std::int64_t i = 0; i < sizes[dim]; ++i) next.push_back(offset + i * strides[dim]);
    }
    result = std::move(next);
  }
  return result;
}

std::vector<std::int64_t> places(const Shape& whole, const Shape& shape, Dims start, Dims stride) {
  std::vector<std::int64_t> strides = row_major_strides(whole);
  std::int64_t first = 0;
  for (std::size_t dim = 0; dim < strides.size(); ++dim) {
    first += start[dim] * strides[dim];
    strides[dim] *= stride[dim];
  }
  std::vector<std::int64_t> result = offsets(shape, strides);
  for (std::int64_t& place : result) place += first;
  return result;
}

Elements take(const Elements& elements, const std::vector<std::int64_t>& where) {
  Elements taken;
  taken.reserve(where.size());
  for (const std::int64_t offset : where)
    taken.push_back(elements[static_cast<std::size_t>(offset)]);
  return taken;
}

double neutral(ReduceKind kind, DType dtype) {
  switch (kind) {
    case ReduceKind::add: return 0;
    case ReduceKind::max: return dtype == DType::pred ? 0 : to_dtype(dtype, -kInfinity);
    case ReduceKind::min: return to_dtype(dtype, kInfinity);
  }
  return kNaN;
}

double combine(ReduceKind kind, double a, double b) {
  if (kind == ReduceKind::add) return a + b;
  if (std::isnan(a) || std::isnan(b)) return kNaN;
  return kind == ReduceKind::max ? std::max(a, b) : std::min(a, b);
}

Elements evaluate(const Program& program, OpId op, std::span<const Elements* const> operands) {
  const OpKind kind = program.kind(op);
  if (is_elementwise(kind)) return elementwise(program, op, operands);
  const TensorType& type = program.type(program.result(op));
  const Dims attrs = program.op_attrs(op);
  const auto operand_type = [&](std::size_t i) { return program.type(program.op_operands(op)[i]); };
  switch (kind) {
    case OpKind::constant: return constant(program, op, type);
    case OpKind::iota: return iota(type.shape, attrs[0]);
    case OpKind::reshape:
    case OpKind::sharding_constraint:
    case OpKind::copy:
    case OpKind::optimization_barrier: return *operands[0];
    case OpKind::transpose:
      return take(*operands[0],
                  offsets(type.shape, pick(row_major_strides(operand_type(0).shape), attrs)));
    case OpKind::broadcast_in_dim:
      return broadcast(*operands[0], operand_type(0).shape, type.shape, attrs);
    case OpKind::slice: return slice(*operands[0], operand_type(0).shape, type.shape, attrs);
    case OpKind::pad:
      return pad(*operands[0], operands[1]->front(), operand_type(0).shape, type.shape, attrs);
    case OpKind::concatenate: return concatenate(program, op, operands);
    case OpKind::reverse: return reverse(*operands[0], type.shape, attrs);
    case OpKind::check_index:
    case OpKind::gather:
    case OpKind::scatter:
    case OpKind::dynamic_slice:
    case OpKind::dynamic_update_slice: return evaluate_indexing(program, op, operands);
    case OpKind::rng_bit_generator: return random_bits(type.shape, *operands[0]);
    case OpKind::dot_general:
      return dot(*operands[0], *operands[1], operand_type(0).shape, operand_type(1).shape, attrs);
    case OpKind::reduce: return reduce(*operands[0], operand_type(0), attrs);
    case OpKind::convolution:
    case OpKind::reduce_window:
    case OpKind::select_and_scatter: return evaluate_window(program, op, operands);
    case OpKind::custom_call: return custom(program, op, operands);
    default: break;
  }
  WEFT_CHECK(is_composite(kind), to_string(kind));
  return evaluate_composite(program, op, operands);
}

}  // namespace weft
