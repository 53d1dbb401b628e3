#include <weft/transport/reduce.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include <weft/spmd/error.hpp>

namespace weft {
namespace {

/// Elements reduced at a time: the running result stays in the first-level cache.
constexpr std::size_t kBlockElements = 1024;

enum class Bf16 : std::uint16_t {};

template <typename T>
T accumulate_as(T value) {
  return value;
}
float accumulate_as(Bf16 value) {
  return std::bit_cast<float>(std::uint32_t{static_cast<std::uint16_t>(value)} << 16);
}

template <typename T>
void round_to(T value, T& result) {
  result = value;
}
void round_to(float value, Bf16& result) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
  const std::uint32_t quiet_nan = bits >> 16 | 0x40U;  // rounding could carry a NaN to infinity
  result = static_cast<Bf16>(value != value ? quiet_nan : rounded);
}

template <typename T>
using Accumulator = decltype(accumulate_as(T{}));

struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      return a + b;
    }
  }
};
/// A NaN among the values stays: comparisons with it are false, and it differs from itself.
struct Max {
  template <typename T>
  T operator()(T a, T b) const {
    return b > a || b != b ? b : a;
  }
};
struct Min {
  template <typename T>
  T operator()(T a, T b) const {
    return b < a || b != b ? b : a;
  }
};

template <typename T, typename Combine>
void reduce_typed(Combine combine, Operands sources, Operands destinations, std::size_t count) {
  alignas(64) Accumulator<T> sums[kBlockElements];
  alignas(64) T results[kBlockElements];
  for (std::size_t begin = 0; begin < count; begin += kBlockElements) {
    const std::size_t size = std::min(kBlockElements, count - begin);
    for (std::size_t q = 0; q < sources.bases.size(); ++q) {
      const T* values = reinterpret_cast<const T*>(sources.bases[q] + sources.offset) + begin;
      if (q == 0) {
        for (std::size_t i = 0; i < size; ++i) sums[i] = accumulate_as(values[i]);
      } else {
        for (std::size_t i = 0; i < size; ++i) sums[i] = combine(sums[i], accumulate_as(values[i]));
      }
    }
    for (std::size_t i = 0; i < size; ++i) round_to(sums[i], results[i]);
    for (std::byte* base : destinations.bases) {
      std::memcpy(base + destinations.offset + begin * sizeof(T), results, size * sizeof(T));
    }
  }
}

template <typename T>
void reduce_kind(ReduceKind kind, Operands sources, Operands destinations, std::size_t count) {
  switch (kind) {
    case ReduceKind::add: return reduce_typed<T>(Add{}, sources, destinations, count);
    case ReduceKind::max: return reduce_typed<T>(Max{}, sources, destinations, count);
    case ReduceKind::min: return reduce_typed<T>(Min{}, sources, destinations, count);
  }
  WEFT_CHECK(false, static_cast<int>(kind));
}

}  // namespace

void reduce(ReduceKind kind, DType dtype, Operands sources, Operands destinations,
            std::int64_t count) {
  const auto elements = static_cast<std::size_t>(count);
  switch (dtype) {
    case DType::pred: return reduce_kind<std::uint8_t>(kind, sources, destinations, elements);
    case DType::i32: return reduce_kind<std::int32_t>(kind, sources, destinations, elements);
    case DType::u32: return reduce_kind<std::uint32_t>(kind, sources, destinations, elements);
    case DType::i64: return reduce_kind<std::int64_t>(kind, sources, destinations, elements);
    case DType::bf16: return reduce_kind<Bf16>(kind, sources, destinations, elements);
    case DType::f32: return reduce_kind<float>(kind, sources, destinations, elements);
    case DType::f64: return reduce_kind<double>(kind, sources, destinations, elements);
  }
  WEFT_CHECK(false, static_cast<int>(dtype));
}

}  // namespace weft
