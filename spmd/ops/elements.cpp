#include "spmd/ops/elements.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "spmd/program/element.hpp"

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

Elements take(const Elements& elements, const std::vector<std::int64_t>& where) {
  Elements taken;
  taken.reserve(where.size());
  for (const std::int64_t offset : where)
    taken.push_back(elements[static_cast<std::size_t>(offset)]);
  return taken;
}

void put(Elements& to, const std::vector<std::int64_t>& where, const Elements& elements) {
  for (std::size_t i = 0; i < where.size(); ++i) {
    to[static_cast<std::size_t>(where[i])] = elements[i];
  }
}

double to_dtype(DType dtype, double x) {
  if (is_floating(dtype)) return x;
  std::array<std::byte, 8> bytes{};
  store_element(dtype, x, bytes.data());
  return load_element(dtype, bytes.data());
}

double wrapped(DType dtype, double x) {
  const bool is_exact = dtype != DType::i64 && std::abs(x) < 0x1p53;
  if (is_floating(dtype) || dtype == DType::pred || !is_exact) return x;
  const double count = std::ldexp(1, static_cast<int>(8 * byte_size(dtype)));
  const double least = to_dtype(dtype, -kInfinity);
  return x - count * std::floor((x - least) / count);
}

bool holds(CompareDirection direction, double a, double b) {
  constexpr bool (*kHolds[])(double, double) = {
      [](double x, double y) { return x == y; }, [](double x, double y) { return x != y; },
      [](double x, double y) { return x < y; },  [](double x, double y) { return x <= y; },
      [](double x, double y) { return x > y; },  [](double x, double y) { return x >= y; }};
  return kHolds[static_cast<std::size_t>(direction)](a, b);
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

}  // namespace weft
