#include "spmd/ops/attribute_views.hpp"

#include <algorithm>
#include <bit>

namespace weft {

std::array<Words, 3> triples(Words words) {
  const std::size_t dims = words.size() / 3;
  return {words.first(dims), words.subspan(dims, dims), words.last(dims)};
}

bool is_whole_dim(Words words, std::size_t dim, const Shape& from) {
  const auto [start, limit, stride] = triples(words);
  return start[dim] == 0 && limit[dim] == from[static_cast<int>(dim)] && stride[dim] == 1;
}

DotDimsView dot_dims(Words words) {
  const auto batch = static_cast<std::size_t>(words[0]);
  const auto contracting = static_cast<std::size_t>(words[1]);
  const Words dims = words.subspan(2);
  return {dims.subspan(0, batch), dims.subspan(batch, batch), dims.subspan(2 * batch, contracting),
          dims.subspan(2 * batch + contracting, contracting),
          dims.size() > 2 * (batch + contracting) ? static_cast<SkipZeros>(dims.back())
                                                  : SkipZeros::never};
}

DimList free_dims(int num_dims, Words batch, Words contracting) {
  const auto has = [](Words dims, std::int64_t dim) {
    return std::find(dims.begin(), dims.end(), dim) != dims.end();
  };
  DimList result;
  for (std::int64_t dim = 0; dim < num_dims; ++dim) {
    if (!has(batch, dim) && !has(contracting, dim)) result.push_back(dim);
  }
  return result;
}

DimList consecutive_dims(std::int64_t first, std::int64_t count) {
  DimList dims;
  for (std::int64_t i = 0; i < count; ++i) dims.push_back(first + i);
  return dims;
}

DimList inverse_permutation(Words perm) {
  DimList result(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) {
    result[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  }
  return result;
}

std::vector<std::int64_t> to_attrs(const Normalization& normalization) {
  return {normalization.center ? 1 : 0, std::bit_cast<std::int64_t>(normalization.eps)};
}

Normalization normalization_of(Words words) {
  return {.center = words[0] != 0, .eps = std::bit_cast<double>(words[1])};
}

std::vector<std::int64_t> to_attrs(const AttentionForm& form) {
  return {form.causal ? 1 : 0, std::bit_cast<std::int64_t>(form.scale)};
}

AttentionForm attention_form_of(Words words) {
  return {.causal = words[0] != 0, .scale = std::bit_cast<double>(words[1])};
}

}  // namespace weft
