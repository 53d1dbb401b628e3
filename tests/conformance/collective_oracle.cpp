#include "tests/conformance/collective_oracle.hpp"

#include <array>
#include <cmath>
#include <cstring>

#include "spmd/program/element.hpp"

namespace weft::testing {
namespace {

using Bytes = std::vector<std::byte>;

/// The SplitMix64 hash.
std::uint64_t hash(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

template <typename T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}
template <typename T>
void store(T value, std::byte* bytes) {
  std::memcpy(bytes, &value, sizeof(value));
}

void store_random(DType dtype, std::uint64_t bits, std::byte* bytes) {
  const double scaled = std::ldexp(static_cast<double>(static_cast<std::int32_t>(bits)),
                                   static_cast<int>(bits >> 32 & 15U) - 30);
  switch (dtype) {
    case DType::pred: return store(static_cast<std::uint8_t>(bits & 1U), bytes);
    case DType::i32:
    case DType::u32: return store(static_cast<std::uint32_t>(bits), bytes);
    case DType::i64: return store(bits, bytes);
    case DType::i8:
    case DType::u8: return store(static_cast<std::uint8_t>(bits), bytes);
    case DType::bf16:
    case DType::f16:
    case DType::f32: return store_element(dtype, scaled, bytes);
    case DType::f64:
      return store(scaled * (1 + std::ldexp(static_cast<double>(bits >> 36), -40)), bytes);
  }
}

template <typename T>
T combine(ReduceKind kind, T a, T b) {
  switch (kind) {
    case ReduceKind::add: return static_cast<T>(a + b);
    case ReduceKind::max: return a < b ? b : a;
    case ReduceKind::min: return b < a ? b : a;
  }
  return a;
}

/// Writes the sum of the elements at `offset` of all operands, in their order, to `result`.
void reduce_element(const CollectiveCall& call, std::span<const Bytes* const> operands,
                    std::size_t offset, std::byte* result) {
  const auto fold = [&]<typename T>(T (*read)(const std::byte*)) {
    T sum = read(operands[0]->data() + offset);
    for (std::size_t q = 1; q < operands.size(); ++q) {
      sum = combine(call.reduce, sum, read(operands[q]->data() + offset));
    }
    return sum;
  };
  const bool adds = call.reduce == ReduceKind::add;
  switch (call.dtype) {
    case DType::pred:
    case DType::u8: return store(fold(load<std::uint8_t>), result);
    case DType::i8:
      return adds ? store(fold(load<std::uint8_t>), result)
                  : store(fold(load<std::int8_t>), result);
    case DType::i32:
      return adds ? store(fold(load<std::uint32_t>), result)
                  : store(fold(load<std::int32_t>), result);
    case DType::u32: return store(fold(load<std::uint32_t>), result);
    case DType::i64:
      return adds ? store(fold(load<std::uint64_t>), result)
                  : store(fold(load<std::int64_t>), result);
    case DType::bf16:
      return store_element(DType::bf16, fold(+[](const std::byte* bytes) {
                             return static_cast<float>(load_element(DType::bf16, bytes));
                           }),
                           result);
    case DType::f16:
      return store_element(DType::f16, fold(+[](const std::byte* bytes) {
                             return static_cast<float>(load_element(DType::f16, bytes));
                           }),
                           result);
    case DType::f32: return store(fold(load<float>), result);
    case DType::f64: return store(fold(load<double>), result);
  }
}

/// Returns the row-major coordinates of a linear index.
std::array<std::int64_t, kDimCountMax> coords_of(std::int64_t index, const Shape& shape) {
  std::array<std::int64_t, kDimCountMax> coords{};
  for (int dim = shape.size() - 1; dim >= 0; --dim) {
    coords[static_cast<std::size_t>(dim)] = index % shape[dim];
    index /= shape[dim];
  }
  return coords;
}
std::int64_t index_of(const std::array<std::int64_t, kDimCountMax>& coords, const Shape& shape) {
  std::int64_t index = 0;
  for (int dim = 0; dim < shape.size(); ++dim) {
    index = index * shape[dim] + coords[static_cast<std::size_t>(dim)];
  }
  return index;
}

/// The member whose operand has an element, and the element's index in that operand.
struct Origin {
  std::int64_t member;
  std::int64_t index;
};
/// Returns the origin of element `index` of the result of member `self`.
Origin origin(const CollectiveCall& call, std::int64_t n, std::int64_t self, std::int64_t index) {
  switch (call.kind) {
    case CollectiveKind::all_gather: {
      const std::int64_t row = index / call.count;
      return {row % n, row / n * call.count + index % call.count};
    }
    case CollectiveKind::all_to_all: {
      Shape result = call.shape;
      result[call.split_dim] /= n;
      result[call.concat_dim] *= n;
      auto coords = coords_of(index, result);
      const std::int64_t joined = result[call.concat_dim] / n;
      auto& concat = coords[static_cast<std::size_t>(call.concat_dim)];
      const std::int64_t member = concat / joined;
      concat %= joined;
      const std::int64_t part = call.shape[call.split_dim] / n;
      coords[static_cast<std::size_t>(call.split_dim)] += self * part;
      return {member, index_of(coords, call.shape)};
    }
    case CollectiveKind::permute: return {call.from[static_cast<std::size_t>(self)], index};
    default: return {call.from[0], index};
  }
}

/// Returns the number of elements in a chip's source.
std::int64_t source_elements(const CollectiveCall& call, std::int64_t n) {
  switch (call.kind) {
    case CollectiveKind::barrier: return 0;
    case CollectiveKind::all_gather: return call.outer * call.count;
    case CollectiveKind::reduce_scatter: return call.outer * n * call.count;
    case CollectiveKind::all_to_all: return call.shape.num_elements();
    default: return call.count;
  }
}

Bytes random_operand(const CollectiveCall& call, std::int64_t n, std::uint64_t seed) {
  const auto size = static_cast<std::size_t>(byte_size(call.dtype));
  const auto elements = static_cast<std::size_t>(source_elements(call, n));
  Bytes bytes(elements * size);
  for (std::size_t i = 0; i < elements; ++i) {
    store_random(call.dtype, hash(seed + i), bytes.data() + i * size);
  }
  return bytes;
}

/// Returns the result of member `self`. `operands` has one operand for each member of the group.
Bytes result_of(const CollectiveCall& call, std::span<const Bytes* const> operands,
                std::int64_t self) {
  const auto size = static_cast<std::size_t>(byte_size(call.dtype));
  const auto n = static_cast<std::int64_t>(operands.size());
  std::size_t elements = operands[0]->size() / size;
  if (call.kind == CollectiveKind::all_gather) elements *= operands.size();
  if (call.kind == CollectiveKind::reduce_scatter) elements /= operands.size();
  Bytes result(elements * size);
  for (std::size_t i = 0; i < elements; ++i) {
    std::byte* element = result.data() + i * size;
    const auto index = static_cast<std::int64_t>(i);
    if (call.kind == CollectiveKind::all_reduce) {
      reduce_element(call, operands, i * size, element);
    } else if (call.kind == CollectiveKind::reduce_scatter) {
      const std::int64_t row = index / call.count * n + self;
      const auto from = static_cast<std::size_t>(row * call.count + index % call.count);
      reduce_element(call, operands, from * size, element);
    } else {
      const Origin from = origin(call, n, self, index);
      std::memcpy(element,
                  operands[static_cast<std::size_t>(from.member)]->data() +
                      static_cast<std::size_t>(from.index) * size,
                  size);
    }
  }
  return result;
}

}  // namespace

void solve(CollectiveCase& which, const Mesh& mesh) {
  const CollectiveCall& call = which.call;
  const std::int64_t n = mesh.count(call.atoms);
  for (int position = 0; position < mesh.size(); ++position) {
    const std::uint64_t seed = hash(which.seed * 1024 + static_cast<std::uint64_t>(position));
    which.operands.push_back(random_operand(call, n, seed));
  }
  const bool same_for_all = call.kind == CollectiveKind::all_reduce;
  for (int position = 0; position < mesh.size(); ++position) {
    const std::vector<int> group = mesh.group(position, call.atoms);
    std::vector<const Bytes*> operands;
    for (const int member : group) {
      operands.push_back(&which.operands[static_cast<std::size_t>(member)]);
    }
    const std::int64_t self = mesh.index_in(position, call.atoms);
    const auto first = static_cast<std::size_t>(group[0]);
    which.results.push_back(same_for_all && self != 0 ? which.results[first]
                                                      : result_of(call, operands, self));
  }
}

}  // namespace weft::testing
