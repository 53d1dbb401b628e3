#include "spmd/ops/attributes.hpp"

#include <algorithm>

namespace weft {
namespace {

/// Returns the number of attribute words that don't depend on n (see Attr); std::nullopt if the
/// length of a `pairs` is out of range.
std::optional<std::size_t> count_fixed(const Attrs& attrs, Words words) {
  std::size_t fixed = attrs.base;
  if (attrs.num_pairs > words.size()) return {};
  for (std::size_t pair = 0; pair < attrs.num_pairs; ++pair) {
    if (words[pair] < 0 || words[pair] > kDimCountMax) return {};
    fixed += 1 + 2 * static_cast<std::size_t>(words[pair]);
  }
  return fixed;
}

bool fits_fixed(const Attrs& attrs, Words words, std::size_t fixed) {
  if (attrs.per == 0) return words.size() == fixed;
  if (attrs.per == 1) return words.size() >= fixed;
  return words.size() >= fixed && (words.size() - fixed) % attrs.per == 0;
}

/// Returns the list without its last attribute if that attribute is an optional list; otherwise
/// std::nullopt.
std::optional<Attrs> without_last(const Attrs& attrs) {
  if (attrs.empty() || !attrs.back().optional || !attrs.back().is_list) return {};
  return Attrs(attrs.first(attrs.size() - 1));
}

}  // namespace

bool fits_some_n(const Attrs& attrs, Words words) {
  const auto fixed = count_fixed(attrs, words);
  if (fixed && fits_fixed(attrs, words, *fixed)) return true;
  const auto shorter = without_last(attrs);
  return shorter && fits_some_n(*shorter, words);
}

std::optional<AttrWords> split_words(const Attrs& attrs, Words words) {
  const auto fixed = count_fixed(attrs, words);
  if (!fixed || !fits_fixed(attrs, words, *fixed)) {
    const auto shorter = without_last(attrs);
    auto rest = shorter ? split_words(*shorter, words) : std::nullopt;
    if (rest) rest->push_back({});
    return rest;
  }
  const std::size_t n = attrs.per == 0 ? 0 : (words.size() - *fixed) / attrs.per;
  AttrWords parts;
  std::size_t at = attrs.num_pairs;
  std::size_t pair = 0;
  for (const Attr& attr : attrs) {
    const std::size_t length = attr.form == Form::pairs
                                   ? 2 * static_cast<std::size_t>(words[pair++])
                                   : attr.per * n + attr.base;
    parts.push_back(words.subspan(at, length));
    at += length;
  }
  return parts;
}

bool depends_on_chip(const Attrs& attrs, Words words) {
  const auto is_set = [](std::int64_t bits) { return bits != 0; };
  if (!attrs.has_atoms) return false;
  const auto parts = split_words(attrs, words);
  WEFT_CHECK(parts.has_value(), words.size());
  for (std::size_t i = 0; i < attrs.size(); ++i) {
    if (attrs[i].form == Form::atoms && std::ranges::any_of((*parts)[i], is_set)) return true;
  }
  return false;
}

}  // namespace weft
