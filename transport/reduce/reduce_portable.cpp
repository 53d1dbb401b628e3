#include "transport/reduce/reduce_kernel.hpp"

namespace weft {
namespace {

template <typename Element, typename Kind>
struct Loop16 {
  using Stored = Vector<typename Element::Stored, Element::kLanes>;
  using Combined = Vector<typename Element::Combined, Element::kLanes>;
  static constexpr std::size_t kVectors = sizeof(Bytes16) / sizeof(Stored);
  struct Parts {
    Stored values[kVectors];
  };

  static Parts load(const std::byte* from) {
    Bytes16 bytes;
    __builtin_memcpy(&bytes, from, sizeof bytes);
    return __builtin_bit_cast(Parts, bytes);
  }

  static Bytes16 run(const std::byte* const* sources, std::size_t num_sources) {
    Combined results[kVectors];
    const Parts first = load(sources[0]);
#pragma GCC unroll 2
    for (std::size_t v = 0; v < kVectors; ++v) results[v] = Element::widen(first.values[v]);
    for (std::size_t q = 1; q < num_sources; ++q) {
      const Parts next = load(sources[q]);
#pragma GCC unroll 2
      for (std::size_t v = 0; v < kVectors; ++v) {
        results[v] = Kind::combine(results[v], Element::widen(next.values[v]));
      }
    }
    Parts result;
#pragma GCC unroll 2
    for (std::size_t v = 0; v < kVectors; ++v) result.values[v] = Element::narrow(results[v]);
    return __builtin_bit_cast(Bytes16, result);
  }
  static constexpr ReduceLoop16 kRun = &run;
};

}  // namespace

const ReduceTable kPortableReduce = reduce_table();
const ReduceDTypes<ReduceLoop16> kReduce16 = reduce_table<Loop16>();

}  // namespace weft
