#include <algorithm>

#include "chips/cpu/loops/element.hpp"
#include "chips/cpu/loops/prepares.hpp"
#include "chips/cpu/loops/strided.hpp"
#include "spmd/program/philox.hpp"

namespace weft::kernels {
namespace {

/// Writes the random words for `count` elements of the whole tensor, beginning with element number
/// `element`.
void draw(const PhiloxBlock& state, std::uint64_t element, std::int64_t count, std::uint32_t* to) {
  while (count > 0) {
    const PhiloxBlock block = generator_block(state, element / 4);
    const auto skipped = static_cast<std::int64_t>(element % 4);
    const std::int64_t taken = std::min(4 - skipped, count);
    to = std::copy_n(block.begin() + skipped, taken, to);
    element += static_cast<std::uint64_t>(taken);
    count -= taken;
  }
}

/// A chip's part of a row-major tensor, divided into runs of elements that are adjacent in the
/// whole tensor.
struct Part {
  Shape shape;         ///< shape of the part, without the dims inside a run
  Strides strides{};   ///< strides in the whole tensor
  std::int64_t first;  ///< number of the part's first element in the whole tensor
  std::int64_t run;    ///< number of elements of a run
  std::int64_t runs;

  /// Returns the number, in the whole tensor, of the first element of run `r`.
  std::int64_t begin(std::int64_t r) const {
    std::int64_t element = first;
    for (int dim = shape.size() - 1; dim >= 0; --dim) {
      element += r % shape[dim] * strides[static_cast<std::size_t>(dim)];
      r /= shape[dim];
    }
    return element;
  }
};

Part part_of(const Shape& local, std::span<const std::int64_t> atoms, const ChipContext& chip) {
  const auto dims = static_cast<std::size_t>(local.size());
  Shape whole = local;
  Strides offsets{};
  for (std::size_t dim = 0; dim < dims; ++dim) {
    const AtomList list = AtomList::from_bits(static_cast<std::uint64_t>(atoms[dim]));
    const std::int64_t size = local[static_cast<int>(dim)];
    whole[static_cast<int>(dim)] *= chip.mesh.count(list);
    offsets[dim] = chip.mesh.index_in(chip.position, list) * size;
  }
  Part part{{}, dense_strides(whole), 0, 1, 1};
  for (std::size_t dim = 0; dim < dims; ++dim) part.first += offsets[dim] * part.strides[dim];
  // A run covers the chip's part of the last sharded dim, and all dims after that dim.
  std::size_t outside = dims;
  bool is_cut = false;
  while (outside > 0 && !is_cut) {
    const auto dim = static_cast<int>(--outside);
    part.run *= local[dim];
    is_cut = local[dim] != whole[dim];
  }
  part.shape = Shape(std::span<const std::int64_t>(local).first(outside));
  part.runs = part.shape.num_elements();
  return part;
}

Kernel rng_bit_generator(const Program& program, OpId op, const ChipContext& chip) {
  const Shape& shape = program.shape(program.result(op));
  return {[part = part_of(shape, program.op_attrs(op), chip)](const KernelArgs& args) {
    PhiloxBlock state;
    std::copy_n(as<std::uint32_t>(args.operands[0]), state.size(), state.begin());
    auto* to = as<std::uint32_t>(args.result);
    for (std::int64_t r = 0; r < part.runs; ++r, to += part.run) {
      draw(state, static_cast<std::uint64_t>(part.begin(r)), part.run, to);
    }
  }};
}

}  // namespace

constexpr Prepare prepares::rng_bit_generator = prepare_by<kernels::rng_bit_generator>;

}  // namespace weft::kernels
