#pragma once
/// Views that give names to the attribute words of some ops. The `words` must have passed
/// infer_type().

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <weft/tensor/type.hpp>

#include "spmd/ops/attributes.hpp"

namespace weft {

/// Splits the words of a slice (start, limit, stride) or of a pad (low, high, interior) into these
/// three lists.
std::array<Words, 3> triples(Words words);
/// Returns whether a slice with these words takes the whole dim.
bool is_whole_dim(Words words, std::size_t dim, const Shape& from);

/// Names a tensor whose zeros make a product 0 even where the other factor is NaN or infinite.
enum class SkipZeros : std::int8_t {
  never = -1,
  lhs,        ///< the zeros of lhs; lhs then has no gradient there
  rhs,        ///< the zeros of rhs; rhs then has no gradient there
  cotangent,  ///< the zeros of the result's cotangent; affects only the gradient
};

/// The dims of a dot_general.
struct DotDimsView {
  Words lhs_batch, rhs_batch, lhs_contracting, rhs_contracting;
  SkipZeros skip_zeros = SkipZeros::never;
};
DotDimsView dot_dims(Words words);
/// Returns the dims below `num_dims` that are in neither list, ascending.
DimList free_dims(int num_dims, Words batch, Words contracting);

/// Returns first, first + 1, ..
DimList consecutive_dims(std::int64_t first, std::int64_t count);
/// Returns the permutation that undoes `perm`.
DimList inverse_permutation(Words perm);

/// The attributes of normalize and normalize_grad.
struct Normalization {
  bool center = true;  ///< true subtracts the mean first (layer norm); false only scales (rms norm)
  double eps = 1e-5;   ///< added to the mean square; 0 or more
};
std::vector<std::int64_t> to_attrs(const Normalization& normalization);
Normalization normalization_of(Words words);

/// The attributes of attention and attention_grad.
struct AttentionForm {
  bool causal = false;  ///< query i sees keys 0 to i
  double scale = 1;     ///< the factor of q k^T
};
std::vector<std::int64_t> to_attrs(const AttentionForm& form);
AttentionForm attention_form_of(Words words);

/// Says how an op's attributes change if the dims of its tensors are put in another order.
enum class Reorder : std::uint8_t {
  refused,      ///< the dims can't be put in another order
  nothing,      ///< the attributes don't change
  window,       ///< the attributes are lists with an entry for each dim
  lists,        ///< the attributes are three lists with an entry for each dim
  joined_dim,   ///< the attribute is the number of a dim
  broadcast,    ///< the attribute has, for each operand dim, the result's dim
  summed_dims,  ///< the attribute lists the dims that the result lacks
  convolution,  ///< as for a convolution, whose tensors have feature dims at different places
};

}  // namespace weft
