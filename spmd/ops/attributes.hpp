#pragma once
/// Attributes of ops: i64 words in a Program, which a list of Attr gives names and forms. Printer,
/// parser, checks, fingerprint, difference report, partition and padding follow from the list.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <weft/spmd/mesh/sharding.hpp>
#include <weft/spmd/program/type.hpp>

namespace weft {

using Words = std::span<const std::int64_t>;

enum class Form : std::uint8_t {
  integer,
  flag,         ///< 0 or 1
  number,       ///< the bits of an f64
  reduce_kind,  ///< ReduceKind
  direction,    ///< CompareDirection
  atoms,        ///< AtomList::bits()
  pairs,        ///< two lists of dims, whose length is a word in front of all attributes
  elements,     ///< of a constant: {byte offset in Program::const_pool, bytes}
  constraint,   ///< index in Program::constraints
  target,       ///< index in Program::custom_targets
};

/// What becomes of an attribute in a chip's program.
enum class OnChip : std::uint8_t {
  same,
  size,   ///< the size of a dim of the chip's part
  atoms,  ///< the atoms that shard a dim; its value depends on the chip's place then
};

/// The tensor and the dim that `size` and `atoms` speak of.
struct AttrDim {
  static constexpr std::int8_t kResult = -1;   ///< as `tensor`
  static constexpr std::int8_t kEachDim = -1;  ///< as `dim`: word i of the list is of dim i
  std::int8_t tensor = kResult;                ///< operand, or kResult
  std::int8_t dim = 0;
  bool dim_in_word = false;  ///< `dim` is the number of the word that holds it
};

/// An attribute has `per * n + base` words, where n is the same for all attributes of an op and
/// follows from how many words there are.
struct Attr {
  std::string_view name;
  Form form = Form::integer;
  std::uint8_t per = 0;
  std::uint8_t base = 1;
  bool is_list = false;
  bool optional = false;  ///< left out of the text, and of a list the words, where 0 or empty
  OnChip on_chip = OnChip::same;
  AttrDim of{};

  constexpr Attr if_set() const {
    Attr attr = *this;
    attr.optional = true;
    return attr;
  }
  constexpr Attr size_of(std::int8_t tensor, std::int8_t dim) const {
    return placed(OnChip::size, {tensor, dim});
  }
  constexpr Attr atoms_of(std::int8_t tensor, std::int8_t dim) const {
    return placed(OnChip::atoms, {tensor, dim});
  }
  /// Of the result's dim that a word names.
  constexpr Attr atoms_of_dim_in(std::int8_t word) const {
    return placed(OnChip::atoms, {AttrDim::kResult, word, true});
  }

 private:
  constexpr Attr placed(OnChip what, AttrDim dim) const {
    Attr attr = *this;
    attr.on_chip = what;
    attr.of = dim;
    return attr;
  }
};

using Attrs = std::span<const Attr>;

constexpr Attr integer(std::string_view name) { return {.name = name}; }
constexpr Attr flag(std::string_view name) { return {.name = name, .form = Form::flag}; }
constexpr Attr number(std::string_view name) { return {.name = name, .form = Form::number}; }
constexpr Attr reduce_kind() { return {.name = "kind", .form = Form::reduce_kind}; }
/// A list of `per * n + base` integers.
constexpr Attr list(std::string_view name, std::uint8_t per = 1, std::uint8_t base = 0) {
  return {.name = name, .per = per, .base = base, .is_list = true};
}
constexpr Attr pairs(std::string_view name) {
  return {.name = name, .form = Form::pairs, .base = 0, .is_list = true};
}
constexpr Attr atoms() { return {.name = "atoms", .form = Form::atoms}; }
/// Of each dim.
constexpr Attr atom_lists(std::string_view name) {
  return {.name = name, .form = Form::atoms, .per = 1, .base = 0, .is_list = true};
}

/// The words of each attribute; of `pairs` those of both lists, one behind the other.
using AttrWords = InplaceVector<Words, 12>;
/// Nothing where the words are not as many as the list asks for.
std::optional<AttrWords> split_words(Attrs attrs, Words words);

/// Whether an attribute that holds atoms has some: the value depends on the chip.
bool depends_on_chip(Attrs attrs, Words words);

/// The shapes of a chip's part (or, in padding, of the padded whole), and how it lies.
struct PartShapes {
  std::span<const Shape* const> operands;
  const Shape& result;
  std::span<const Sharding> operand_layouts{};
  const Sharding* result_layout = nullptr;  ///< null in padding: atoms stay as they are
};
/// The words with the sizes and atoms of the part.
void put_part(Attrs attrs, std::span<std::int64_t> words, const PartShapes& shapes);

/// Where a chip's part begins, and how many there are: by each attribute with OnChip::atoms, word
/// by word.
struct PartPlace {
  std::int64_t first = 0;  ///< in elements of the whole dim
  std::int64_t parts = 1;
};

}  // namespace weft
