/// Defines the ops without operands, and the op that makes random bits.

#include <algorithm>

#include "spmd/ops/elements.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/program/element.hpp"
#include "spmd/program/philox.hpp"

namespace weft {
namespace {

using infer::reject;

TensorType constant_type(const OpSignature& op) {
  if (op.attrs[1] != op.result.bytes() && op.attrs[1] != byte_size(op.result.dtype)) {
    reject(op, "{} has {} bytes, but {} are given ({} for a splat)", op.result.to_string(),
           op.result.bytes(), op.attrs[1], byte_size(op.result.dtype));
  }
  return op.result;
}

TensorType iota_type(const OpSignature& op) {
  if (op.result.dtype == DType::pred) reject(op, "the result can't be pred");
  infer::expect_dim(op, op.attrs[0], op.result.shape);
  infer::expect_atom_lists(op, op.attrs.subspan(1));
  return op.result;
}

TensorType random_type(const OpSignature& op) {
  infer::expect_words(op, static_cast<std::size_t>(op.result.shape.size()));
  infer::expect_atom_lists(op, op.attrs);
  if (op.operands[0] != TensorType{DType::u32, {4}}) reject(op, "the state must be u32[4]");
  if (op.result.dtype != DType::u32) {
    reject(op, "gives u32, not {}", to_string(op.result.dtype));
  }
  return op.result;
}

Elements constant_elements(const Evaluation& e) {
  const std::byte* bytes = e.program.const_pool.data() + e.attrs()[0];
  const std::int64_t size = byte_size(e.type().dtype);
  const std::int64_t step = e.attrs()[1] == e.type().bytes() ? size : 0;
  Elements result(static_cast<std::size_t>(e.type().num_elements()));
  for (double& element : result) {
    element = load_element(e.type().dtype, bytes);
    bytes += step;
  }
  return result;
}

Elements iota_elements(const Evaluation& e) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(e.shape().size()), 0);
  strides[static_cast<std::size_t>(e.attrs()[0])] = 1;
  Elements result;
  for (const std::int64_t index : offsets(e.shape(), strides)) {
    result.push_back(static_cast<double>(e.place[0].first + index));
  }
  return result;
}

/// Draws the words of the whole tensor, and returns the chip's part.
Elements random_elements(const Evaluation& e) {
  Shape whole = e.shape();
  std::vector<std::int64_t> at;
  for (int dim = 0; dim < whole.size(); ++dim) {
    const PartPlace& place = e.place[static_cast<std::size_t>(dim)];
    whole[dim] *= place.parts;
    at.push_back(place.first);
  }
  PhiloxBlock words{};
  std::ranges::transform(e.operand(0), words.begin(),
                         [](double word) { return static_cast<std::uint32_t>(word); });
  Elements all(static_cast<std::size_t>(whole.num_elements()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = generator_block(words, i / 4)[i % 4];
  return take(all, box(whole, e.shape(), at));
}

constexpr Attr kElements[] = {{.name = "value", .form = Form::elements, .base = 2}};
constexpr Attr kIota[] = {integer("dim"), atoms().atoms_of_dim_in(0).if_set()};
constexpr Attr kRandom[] = {atom_lists("atoms").atoms_of(AttrDim::kResult, AttrDim::kEachDim)};

}  // namespace

constexpr OpRow rows::constant{
    .doc =
        "The elements that the program contains. If it has the bytes of one element, the result "
        "repeats it.",
    .operands = operands(0),
    .attrs = Attrs(kElements),
    .infer = constant_type,
    .rule = Rule("-> d* free={d*}"),
    .spreads = Spreads::later,
    .resized = none,
    .pads = Pads::if_fill,
    .linear = none,
    .gradient = none,
    .evaluate = constant_elements,
    .decompose = none,
    .cost = Cost::How::nothing,
    .traits = Traits{.on_demand = true, .near = true},
};

constexpr OpRow rows::iota{
    .doc =
        "The index along dim. On a chip it is the index in the whole tensor: the chip's number "
        "among the chips of atoms, times the size of its part, is added.",
    .operands = operands(0),
    .attrs = Attrs(kIota),
    .infer = iota_type,
    .rule = Rule("-> d* free={d*}"),
    .spreads = Spreads::later,
    .resized = none,
    .pads = Pads::yes,
    .linear = none,
    .gradient = none,
    .evaluate = iota_elements,
    .decompose = none,
    .cost = Cost::How::nothing,
    .traits = Traits{.on_demand = true},
};

/// Element i of the whole tensor, row-major, is word i % 4 of the block with key state[0..1] and
/// counter (low and high word of i / 4, state[2..3]).
constexpr OpRow rows::rng_bit_generator{
    .doc =
        "Words of Philox4x32-10. A word depends on the state u32[4] and its position, but not on "
        "the sharding.",
    .operands = operands(1),
    .attrs = Attrs(kRandom),
    .infer = random_type,
    .rule = Rule("s -> d* free={d*}"),
    .spreads = Spreads::later,
    .resized = none,
    .pads = Pads::no,
    .linear = none,
    .gradient = none,
    .evaluate = random_elements,
    .decompose = none,
    .cost = Cost::How::nothing,
    .traits = Traits{},
};

}  // namespace weft
