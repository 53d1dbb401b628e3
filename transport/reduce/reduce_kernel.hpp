/// The loops of reduce() for one instruction set. Each source file that compiles the loops for a
/// set includes this file once. See reduce_loops.hpp.

#include "transport/reduce/reduce_elements.hpp"
#include "transport/reduce/reduce_loops.hpp"

namespace weft {
namespace {

template <typename Element, typename Kind>
struct VectorLoop {
  using Stored = Vector<typename Element::Stored, Element::kLanes>;
  using Combined = Vector<typename Element::Combined, Element::kLanes>;
  static constexpr std::size_t kBytes = sizeof(Stored);
  /// Up to this many sources are read in short blocks. All arenas begin on a page, so all operands
  /// of an element share one set of the first-level cache. More operands don't fit in this set, so
  /// each of them is read in longer runs.
  static constexpr std::size_t kFewSources = 4;

  template <std::size_t bytes = kBytes>
  static Combined load(const std::byte* from) {
    Stored values{};
    __builtin_memcpy(&values, from, bytes);
    return Element::widen(values);
  }

  template <std::size_t bytes = kBytes>
  static void store(std::byte* to, Combined result) {
    const Stored values = Element::narrow(result);
    __builtin_memcpy(to, &values, bytes);
  }

  /// Combines `vectors` vectors of `bytes` bytes each, at offset `at`. Until all sources are read,
  /// the results stay in registers, or in the first-level cache if there are too many results.
  /// `bytes` is a compile-time constant, because copies of other sizes would be function calls.
  template <int vectors, std::size_t bytes = kBytes>
  [[gnu::always_inline]] static inline void block(const ReduceArgs& args, std::size_t at) {
    Combined results[vectors];
    const std::byte* first = args.sources[0] + args.source_offset + at;
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) results[v] = load<bytes>(first + v * bytes);
    for (std::size_t q = 1; q < args.num_sources; ++q) {
      const std::byte* source = args.sources[q] + args.source_offset + at;
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        results[v] = Kind::combine(results[v], load<bytes>(source + v * bytes));
      }
    }
    for (std::size_t q = 0; q < args.num_destinations; ++q) {
      std::byte* destination = args.destinations[q] + args.destination_offset + at;
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) store<bytes>(destination + v * bytes, results[v]);
    }
  }

  /// Combines the last `bytes` bytes. There are fewer than 2 * part_bytes of them.
  template <std::size_t part_bytes>
  [[gnu::always_inline]] static inline void rest(const ReduceArgs& args, std::size_t at,
                                                 std::size_t bytes) {
    if (bytes >= part_bytes) {
      block<1, part_bytes>(args, at);
      at += part_bytes;
      bytes -= part_bytes;
    }
    if constexpr (part_bytes > sizeof(typename Element::Stored)) {
      if (bytes != 0) rest<part_bytes / 2>(args, at, bytes);
    }
  }

  template <int vectors>
  [[gnu::always_inline]] static inline void all(const ReduceArgs args) {
    const std::size_t bytes = args.count * sizeof(typename Element::Stored);
    std::size_t at = 0;
    for (; bytes - at >= vectors * kBytes; at += vectors * kBytes) block<vectors>(args, at);
    for (; bytes - at >= kBytes; at += kBytes) block<1>(args, at);
    if (at != bytes) rest<kBytes / 2>(args, at, bytes - at);
  }

  /// The loop for two chips, the most frequent case. Copies the addresses to local variables,
  /// because otherwise the compiler would load them again after each store, which might have
  /// changed them.
  template <std::size_t num_destinations>
  static void run_pair(const ReduceArgs& args) {
    std::byte* const sources[] = {args.sources[0] + args.source_offset,
                                  args.sources[1] + args.source_offset};
    std::byte* destinations[num_destinations];
    for (std::size_t q = 0; q < num_destinations; ++q) {
      destinations[q] = args.destinations[q] + args.destination_offset;
    }
    all<4>({.sources = sources,
            .num_sources = 2,
            .source_offset = 0,
            .destinations = destinations,
            .num_destinations = num_destinations,
            .destination_offset = 0,
            .count = args.count});
  }

  static void run(const ReduceArgs& args) {
    if (args.num_sources > kFewSources) return all<32>(args);
    if (args.num_sources != 2 || args.num_destinations > 2) return all<4>(args);
    args.num_destinations == 2 ? run_pair<2>(args) : run_pair<1>(args);
  }
};

template <typename Element, typename Kind>
struct WholeLoop {
  static constexpr ReduceLoop kRun = &VectorLoop<Element, Kind>::run;
};

template <template <typename, typename> typename LoopOf, typename Element>
constexpr auto kinds_of() {
  constexpr auto kAdd = LoopOf<Element, Add<Element>>::kRun;
  return ReduceKinds<decltype(+kAdd)>{kAdd, LoopOf<Element, Max<Element>>::kRun,
                                      LoopOf<Element, Min<Element>>::kRun};
}

template <template <typename, typename> typename LoopOf = WholeLoop>
constexpr auto reduce_table() {
  return ReduceDTypes<decltype(kinds_of<LoopOf, Bf16>().add)>{
      .pred = kinds_of<LoopOf, Plain<std::uint8_t>>(),
      .i32 = kinds_of<LoopOf, Plain<std::int32_t>>(),
      .u32 = kinds_of<LoopOf, Plain<std::uint32_t>>(),
      .i64 = kinds_of<LoopOf, Plain<std::int64_t>>(),
      .bf16 = kinds_of<LoopOf, Bf16>(),
      .f32 = kinds_of<LoopOf, Plain<float>>(),
      .f64 = kinds_of<LoopOf, Plain<double>>(),
      .f16 = kinds_of<LoopOf, F16>(),
      .i8 = kinds_of<LoopOf, Plain<std::int8_t>>(),
      .u8 = kinds_of<LoopOf, Plain<std::uint8_t>>()};
}

}  // namespace
}  // namespace weft
