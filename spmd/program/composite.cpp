#include <weft/spmd/program/composite.hpp>

#include <bit>

namespace weft {

std::vector<std::int64_t> to_attrs(const Normalization& normalization) {
  return {normalization.center ? 1 : 0, std::bit_cast<std::int64_t>(normalization.eps)};
}

Normalization normalization_of(std::span<const std::int64_t> attrs) {
  return {.center = attrs[0] != 0, .eps = std::bit_cast<double>(attrs[1])};
}

std::vector<std::int64_t> to_attrs(const AttentionForm& form) {
  return {form.causal ? 1 : 0, std::bit_cast<std::int64_t>(form.scale)};
}

AttentionForm attention_form_of(std::span<const std::int64_t> attrs) {
  return {.causal = attrs[0] != 0, .scale = std::bit_cast<double>(attrs[1])};
}

}  // namespace weft
