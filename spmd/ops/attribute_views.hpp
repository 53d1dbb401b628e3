#pragma once
/// Views that give names to the attribute words of some ops. infer_type must accept the `words`.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <weft/tensor/type.hpp>

#include "spmd/ops/attributes.hpp"

namespace weft {

/// The three lists of a slice (start, limit, stride) and a pad (low, high, interior).
std::array<Words, 3> triples(Words words);
/// Whether a slice with these words takes the whole dim.
bool is_whole_dim(Words words, std::size_t dim, const Shape& from);

/// The operand whose zeros make a product 0 even where they meet a NaN or an infinity.
enum class SkipZeros : std::int8_t {
  never = -1,
  lhs,        ///< lhs then has no gradient where it is 0
  rhs,        ///< rhs likewise
  cotangent,  ///< in the gradient alone: those of the result's cotangent
};

/// The dims of a dot_general.
struct DotDimsView {
  Words lhs_batch, rhs_batch, lhs_contracting, rhs_contracting;
  SkipZeros skip_zeros = SkipZeros::never;
};
DotDimsView dot_dims(Words words);
/// The dims below `num_dims` that are in neither list, ascending.
DimList free_dims(int num_dims, Words batch, Words contracting);

/// first, first + 1, ..
DimList consecutive_dims(std::int64_t first, std::int64_t count);
/// The permutation that undoes `perm`.
DimList inverse_permutation(Words perm);

/// The attributes of normalize and normalize_grad.
struct Normalization {
  bool center = true;  ///< subtract the mean first (layer norm); else only scale (rms norm)
  double eps = 1e-5;   ///< added to the mean square; 0 or more
};
std::vector<std::int64_t> to_attrs(const Normalization& normalization);
Normalization normalization_of(Words words);

/// The attributes of attention and attention_grad.
struct AttentionForm {
  bool causal = false;  ///< query i sees keys 0..i
  double scale = 1;     ///< of q k^T
};
std::vector<std::int64_t> to_attrs(const AttentionForm& form);
AttentionForm attention_form_of(Words words);

}  // namespace weft
