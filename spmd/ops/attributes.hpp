#pragma once
/// Attributes of ops: i64 words in a Program. An op's list of Attr has the names and forms of the
/// op's attributes. The printer, parser, checks, fingerprint, difference report, partition and
/// padding use it.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <weft/tensor/type.hpp>

#include "spmd/base/inplace_vector.hpp"
#include "spmd/mesh/sharding.hpp"

namespace weft {

/// A list of dims, each given by its number.
using DimList = InplaceVector<std::int64_t, kDimCountMax>;

using Words = std::span<const std::int64_t>;

enum class Form : std::uint8_t {
  integer,
  flag,         ///< 0 or 1
  number,       ///< the bits of an f64
  reduce_kind,  ///< ReduceKind
  direction,    ///< CompareDirection
  atoms,        ///< AtomList::bits()
  pairs,        ///< two lists of dims of equal length; the length is a word before all attributes
  elements,     ///< the elements of a constant: {byte offset in Program::const_pool, bytes}
  constraint,   ///< an index in Program::constraints
  target,       ///< an index in Program::custom_targets
};

/// Says how an attribute changes in a chip's program.
enum class OnChip : std::uint8_t {
  same,
  size,   ///< the size of a dim of the chip's part
  atoms,  ///< the atoms that shard a dim; the op's value then depends on the chip's position
};

/// Names the tensor and the dim to which OnChip::size and OnChip::atoms refer.
struct AttrDim {
  static constexpr std::int8_t kResult = -1;   ///< as `tensor`: the result
  static constexpr std::int8_t kEachDim = -1;  ///< as `dim`: word i of the list is for dim i
  std::int8_t tensor = kResult;                ///< the index of an operand, or kResult
  std::int8_t dim = 0;
  bool dim_in_word = false;  ///< if true, `dim` is the number of the word that contains the dim
};

/// Describes an attribute. It has `per * n + base` words, where n is the same for all attributes of
/// an op and follows from the op's number of words.
struct Attr {
  std::string_view name;
  Form form = Form::integer;
  std::uint8_t per = 0;
  std::uint8_t base = 1;
  bool is_list = false;
  /// If true, text may omit the attribute if it is 0 or empty, and the words omit an empty list.
  bool optional = false;
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
  /// Returns the attribute as the atoms that shard a dim of the result. That dim is in word `word`.
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

/// The attributes of an op, and properties of all of them together.
class Attrs : public std::span<const Attr> {
 public:
  constexpr Attrs() = default;
  template <std::size_t N>
  constexpr Attrs(const Attr (&attrs)[N]) : Attrs(std::span<const Attr>(attrs)) {}
  constexpr explicit Attrs(std::span<const Attr> attrs) : std::span<const Attr>(attrs) {
    for (const Attr& attr : attrs) {
      per = static_cast<std::uint8_t>(per + attr.per);
      base = static_cast<std::uint8_t>(base + attr.base);
      num_pairs = static_cast<std::uint8_t>(num_pairs + (attr.form == Form::pairs ? 1 : 0));
      has_ranges = has_ranges || attr.form == Form::flag || attr.form == Form::reduce_kind ||
                   attr.form == Form::direction;
      has_atoms = has_atoms || attr.form == Form::atoms;
      is_placed = is_placed || attr.on_chip != OnChip::same;
    }
  }

  std::uint8_t per = 0;        ///< words for each n, summed over all attributes
  std::uint8_t base = 0;       ///< words that don't depend on n, summed over all attributes
  std::uint8_t num_pairs = 0;  ///< the number of attributes of Form::pairs
  bool has_ranges = false;     ///< some words are flags or enumerators
  bool has_atoms = false;
  bool is_placed = false;  ///< some words are different in a chip's program
};

constexpr Attr integer(std::string_view name) { return {.name = name}; }
constexpr Attr flag(std::string_view name) { return {.name = name, .form = Form::flag}; }
constexpr Attr number(std::string_view name) { return {.name = name, .form = Form::number}; }
constexpr Attr reduce_kind() { return {.name = "kind", .form = Form::reduce_kind}; }
/// Makes the attribute of a list of `per * n + base` integers.
constexpr Attr list(std::string_view name, std::uint8_t per = 1, std::uint8_t base = 0) {
  return {.name = name, .per = per, .base = base, .is_list = true};
}
constexpr Attr pairs(std::string_view name) {
  return {.name = name, .form = Form::pairs, .base = 0, .is_list = true};
}
constexpr Attr atoms() { return {.name = "atoms", .form = Form::atoms}; }
/// Makes the attribute with one atom list per dim.
constexpr Attr atom_lists(std::string_view name) {
  return {.name = name, .form = Form::atoms, .per = 1, .base = 0, .is_list = true};
}

/// The words of each attribute. For `pairs` these are the first list, followed by the second.
using AttrWords = InplaceVector<Words, 12>;
/// Divides the words among the attributes. Returns std::nullopt if the number of words doesn't fit.
std::optional<AttrWords> split_words(const Attrs& attrs, Words words);
bool fits_some_n(const Attrs& attrs, Words words);
/// Returns whether the number of words fits the list. Inline, since each recorded op calls it.
inline bool fits(const Attrs& attrs, Words words) {
  if (attrs.num_pairs == 0 && attrs.per <= 1) {
    if (attrs.per == 0 ? words.size() == attrs.base : words.size() >= attrs.base) return true;
  }
  return fits_some_n(attrs, words);
}

/// Returns whether an attribute of Form::atoms has an atom, so that the value depends on the chip.
bool depends_on_chip(const Attrs& attrs, Words words);

}  // namespace weft
