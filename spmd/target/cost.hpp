#pragma once
/// Cost: the computation that an op needs, the same on every kind of chip. A Target says how much
/// time the computation takes on its kind of chip.

#include <cstdint>

#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft {

/// The work for one element of an elementwise op.
enum class Work : std::uint8_t {
  simple,         ///< an addition, a comparison, a conversion
  division,       ///< a division or a root
  function,       ///< a function with short code: an exponential, a tanh
  long_function,  ///< any other function: a power, a sine
};

/// The cost of an op, in flops. A multiply-add of a product counts 2.
struct Cost {
  enum class How : std::uint8_t {
    nothing,        ///< the op only moves, makes or converts elements, or its work is unknown
    elements,       ///< 1 for each element of the result
    function,       ///< computed by a function
    decomposition,  ///< the flops of its primitives
  };
  using Flops = std::int64_t (*)(const Program&, OpId, const Mesh&);
  How how = How::nothing;
  Flops function = nullptr;
  Work work = Work::simple;  ///< used for elementwise ops
  constexpr Cost() = default;
  constexpr Cost(Flops flops) : how(How::function), function(flops) {}
  constexpr Cost(Work of_element) : how(How::elements), work(of_element) {}
  constexpr Cost(How how_it_counts, Work of_element = Work::simple)
      : how(how_it_counts), work(of_element) {}
};

}  // namespace weft
