#include <weft/spmd/ops/attributes.hpp>

#include <algorithm>

namespace weft {
namespace {

/// How many words there are of each kind: in front, for each n, and always.
struct Counts {
  std::size_t lengths = 0;  ///< of pairs
  std::size_t paired = 0;
  std::size_t per = 0;
  std::size_t base = 0;
};

std::optional<Counts> count_words(Attrs attrs, Words words) {
  Counts counts;
  for (const Attr& attr : attrs) {
    counts.per += attr.per;
    counts.base += attr.base;
    if (attr.form != Form::pairs) continue;
    if (counts.lengths == words.size()) return {};
    const std::int64_t length = words[counts.lengths++];
    if (length < 0 || length > kDimCountMax) return {};
    counts.paired += 2 * static_cast<std::size_t>(length);
  }
  return counts;
}

}  // namespace

std::optional<AttrWords> split_words(Attrs attrs, Words words) {
  const auto counts = count_words(attrs, words);
  if (!counts) return {};
  const std::size_t fixed = counts->lengths + counts->paired + counts->base;
  const std::size_t left = words.size() - std::min(fixed, words.size());
  const bool fits =
      words.size() >= fixed && (counts->per == 0 ? left == 0 : left % counts->per == 0);
  if (!fits) {
    // The last list may be missing.
    if (attrs.empty() || !attrs.back().optional || !attrs.back().is_list) return {};
    auto rest = split_words(attrs.first(attrs.size() - 1), words);
    if (rest) rest->push_back({});
    return rest;
  }
  const std::size_t n = counts->per == 0 ? 0 : left / counts->per;
  AttrWords parts;
  std::size_t at = counts->lengths;
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

bool depends_on_chip(Attrs attrs, Words words) {
  const auto is_set = [](std::int64_t bits) { return bits != 0; };
  if (std::ranges::none_of(attrs, [](const Attr& attr) { return attr.form == Form::atoms; })) {
    return false;
  }
  const auto parts = split_words(attrs, words);
  WEFT_CHECK(parts.has_value(), words.size());
  for (std::size_t i = 0; i < attrs.size(); ++i) {
    if (attrs[i].form == Form::atoms && std::ranges::any_of((*parts)[i], is_set)) return true;
  }
  return false;
}

void put_part(Attrs attrs, std::span<std::int64_t> words, const PartShapes& shapes) {
  const auto is_placed = [](const Attr& attr) { return attr.on_chip != OnChip::same; };
  if (std::ranges::none_of(attrs, is_placed)) return;
  const auto parts = split_words(attrs, words);
  WEFT_CHECK(parts.has_value(), words.size());
  for (std::size_t i = 0; i < attrs.size(); ++i) {
    const Attr& attr = attrs[i];
    const bool has_layout = shapes.result_layout != nullptr;
    if (!is_placed(attr) || (attr.on_chip == OnChip::atoms && !has_layout)) continue;
    const auto operand = static_cast<std::size_t>(attr.of.tensor);
    const bool of_result = attr.of.tensor == AttrDim::kResult;
    const auto first = static_cast<std::size_t>((*parts)[i].data() - words.data());
    for (std::size_t k = 0; k < (*parts)[i].size(); ++k) {
      const auto named = static_cast<std::size_t>(attr.of.dim);
      const auto dim = attr.of.dim_in_word                ? static_cast<std::size_t>(words[named])
                       : attr.of.dim == AttrDim::kEachDim ? k
                                                          : named;
      if (attr.on_chip == OnChip::size) {
        const Shape& shape = of_result ? shapes.result : *shapes.operands[operand];
        words[first + k] = shape[static_cast<int>(dim)];
      } else {
        const Sharding& layout =
            of_result ? *shapes.result_layout : shapes.operand_layouts[operand];
        words[first + k] = static_cast<std::int64_t>(layout.dims[dim].bits());
      }
    }
  }
}

}  // namespace weft
