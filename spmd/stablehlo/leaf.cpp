// Lowers the ops without operands, and the op that makes random bits.

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "spmd/program/element.hpp"
#include "spmd/stablehlo/lowering.hpp"

namespace weft {
namespace {

HloValue lower_constant(const HloOp& op) {
  const auto bytes = std::span(op.program.const_pool)
                         .subspan(static_cast<std::size_t>(op.attrs()[0]),
                                  static_cast<std::size_t>(op.attrs()[1]));
  // A double can't represent every i64.
  const bool is_exact = op.dtype() != DType::i64;
  if (op.program.is_fill(op.op) && is_exact) {
    return op.write().splat(op.type, load_element(op.dtype(), bytes.data()));
  }
  if (op.program.is_fill(op.op)) {
    return op.write().broadcast(op.write().constant(op.type.with(HloDims()), bytes), op.type);
  }
  return op.write().constant(op.type, bytes);
}

HloValue lower_iota(const HloOp& op) {
  HloWriter& w = op.write();
  const int dim = static_cast<int>(op.attrs()[0]);
  if (op.is_whole(0)) return w.iota(op.type, dim);
  const HloValue first = op.context.of_position(op.firsts(0));
  const HloValue inner = w.iota(op.type.with(first.type.element), dim);
  return w.convert(w.binary("add", {inner, w.broadcast(first, inner.type)}), op.type.element);
}

/// Writes Philox4x32-10 for vectors of counters (program/philox.hpp).
class PhiloxWriter {
 public:
  PhiloxWriter(HloWriter& writer, const HloValue& state, HloType words)
      : w_(writer), state_(state), words_(std::move(words)) {}

  /// Returns the four words of each block, as four vectors. `numbers` has the blocks' numbers, as
  /// ui64.
  std::array<HloValue, 4> blocks(const HloValue& numbers) {
    const HloValue high = w_.binary("shift_right_logical", {numbers, w_.splat(numbers.type, 32)});
    std::array<HloValue, 4> counter{low_word(numbers), low_word(high), state_word(2),
                                    state_word(3)};
    HloValue key0 = state_word(0);
    HloValue key1 = state_word(1);
    for (int round = 0; round < 10; ++round) {
      const HloValue even = product(counter[0], 0xD2511F53);
      const HloValue odd = product(counter[2], 0xCD9E8D57);
      counter = {w_.binary("xor", {w_.binary("xor", {high_word(odd), counter[1]}), key0}),
                 low_word(odd),
                 w_.binary("xor", {w_.binary("xor", {high_word(even), counter[3]}), key1}),
                 low_word(even)};
      if (round == 9) break;
      key0 = w_.binary("add", {key0, w_.splat(words_, 0x9E3779B9)});
      key1 = w_.binary("add", {key1, w_.splat(words_, 0xBB67AE85)});
    }
    return counter;
  }

 private:
  HloValue state_word(std::int64_t i) {
    const HloValue word = w_.reshape(w_.slice(state_, {i}, {i + 1}, {1}), {});
    return w_.broadcast(word, words_);
  }
  HloValue product(const HloValue& word, std::uint32_t factor) {
    return w_.binary("multiply", {w_.convert(word, "ui64"), w_.splat(words_.with("ui64"), factor)});
  }
  HloValue low_word(const HloValue& x) {
    const HloValue mask = w_.splat(x.type, 0xFFFFFFFF);
    return w_.convert(w_.binary("and", {x, mask}), "ui32");
  }
  HloValue high_word(const HloValue& x) {
    return w_.convert(w_.binary("shift_right_logical", {x, w_.splat(x.type, 32)}), "ui32");
  }

  HloWriter& w_;
  const HloValue& state_;
  const HloType words_;
};

/// Returns, by position, the number that the first word of the chip's part has in the whole tensor.
/// Returns nothing unless each part has words with consecutive numbers and begins with a block.
std::optional<std::vector<std::int64_t>> first_words(const HloOp& op) {
  std::vector<std::int64_t> first(static_cast<std::size_t>(op.context.mesh.size()), 0);
  std::int64_t inner = op.type.num_elements();
  bool is_single = true;  // on the chip, all dims so far have size 1
  for (int dim = 0; dim < op.type.rank(); ++dim) {
    const std::int64_t size = op.type.dims[static_cast<std::size_t>(dim)];
    if (size == 0) return first;
    inner /= size;
    const auto word = static_cast<std::size_t>(dim);
    if (!op.is_whole(word)) {
      // `inner` is the stride of this dim in the whole tensor only if all later dims are whole.
      for (std::size_t next = word + 1; next < op.type.dims.size(); ++next) {
        if (!op.is_whole(next)) return std::nullopt;
      }
      if (!is_single) return std::nullopt;
      const std::vector<std::int64_t> starts = op.firsts(word);
      for (std::size_t chip = 0; chip < first.size(); ++chip) first[chip] = starts[chip] * inner;
    }
    is_single = is_single && size == 1;
  }
  const bool begins = std::ranges::all_of(first, [](std::int64_t at) { return at % 4 == 0; });
  if (!begins) return std::nullopt;
  return first;
}

/// Returns words with consecutive numbers. Computes each block only once.
HloValue consecutive_words(const HloOp& op, const std::vector<std::int64_t>& first) {
  HloWriter& w = op.write();
  const std::int64_t count = op.type.num_elements();
  const HloType blocks{"ui64", {(count + 3) / 4}};
  std::vector<std::int64_t> first_blocks = first;
  for (std::int64_t& block : first_blocks) block /= 4;
  const HloValue start = w.convert(op.context.of_position(first_blocks), "ui64");
  const HloValue numbers = w.binary("add", {w.iota(blocks, 0), w.broadcast(start, blocks)});
  const auto words = PhiloxWriter(w, op.operand(0), blocks.with("ui32")).blocks(numbers);
  HloWriter::Values columns;
  for (const HloValue& word : words) columns.push_back(w.reshape(word, {blocks.dims[0], 1}));
  const HloValue table =
      w.op("concatenate", columns, {"ui32", {blocks.dims[0], 4}}, "dimension = 1 : i64");
  const HloValue flat = w.reshape(table, {4 * blocks.dims[0]});
  return w.reshape(w.slice(flat, {0}, {count}, {1}), op.type.dims);
}

/// Returns words with any numbers. Computes a block for each word, because the words of a block may
/// be on several chips.
HloValue scattered_words(const HloOp& op) {
  HloWriter& w = op.write();
  const HloType wide = op.type.with("ui64");
  HloValue index = w.splat(wide, 0);
  std::int64_t stride = 1;
  for (std::size_t dim = op.type.dims.size(); dim-- > 0;) {
    const HloValue first = w.convert(op.context.of_position(op.firsts(dim)), "ui64");
    const HloValue place =
        w.binary("add", {w.iota(wide, static_cast<int>(dim)), w.broadcast(first, wide)});
    index = w.binary(
        "add", {index, w.binary("multiply", {place, w.splat(wide, static_cast<double>(stride))})});
    stride *= op.type.dims[dim] * place_on_chip(op.program, op.op, &op.context.mesh, 0)[dim].parts;
  }
  const HloValue four = w.splat(wide, 4);
  const auto words =
      PhiloxWriter(w, op.operand(0), op.type).blocks(w.binary("divide", {index, four}));
  const HloValue which = w.binary("remainder", {index, four});
  HloValue result = words[0];
  for (std::size_t i = 1; i < words.size(); ++i) {
    const HloValue is_it = w.compare("EQ", {which, w.splat(wide, static_cast<double>(i))});
    result = w.select({is_it, words[i], result});
  }
  return result;
}

HloValue lower_random(const HloOp& op) {
  if (op.type.num_elements() == 0) return op.zeros();
  const auto first = first_words(op);
  return first ? consecutive_words(op, *first) : scattered_words(op);
}

}  // namespace

constexpr Lowering lowerings::constant = lower_constant;
constexpr Lowering lowerings::iota = lower_iota;
constexpr Lowering lowerings::rng_bit_generator = lower_random;

}  // namespace weft
