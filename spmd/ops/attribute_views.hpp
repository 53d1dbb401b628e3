#pragma once
/// Views that name the attribute words of some ops. infer_type must have accepted the `words`.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <weft/tensor/type.hpp>

#include "spmd/ops/attributes.hpp"

namespace weft {

/// Returns the three lists of a slice (start, limit, stride) or of a pad (low, high, interior).
std::array<Words, 3> triples(Words words);
/// Returns whether a slice with these words takes the whole dim.
bool is_whole_dim(Words words, std::size_t dim, const Shape& from);

/// Names an operand whose zeros make a product 0 even where the other operand is NaN or infinite.
enum class SkipZeros : std::int8_t {
  never = -1,
  lhs,        ///< lhs then has no gradient at its zeros
  rhs,        ///< rhs then has no gradient at its zeros
  cotangent,  ///< the zeros of the result's cotangent, only in the gradient
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
  bool center = true;  ///< subtract the mean first (layer norm); otherwise only scale (rms norm)
  double eps = 1e-5;   ///< added to the mean square; 0 or more
};
std::vector<std::int64_t> to_attrs(const Normalization& normalization);
Normalization normalization_of(Words words);

/// The attributes of attention and attention_grad.
struct AttentionForm {
  bool causal = false;  ///< query i sees keys 0..i
  double scale = 1;     ///< the factor of q k^T
};
std::vector<std::int64_t> to_attrs(const AttentionForm& form);
AttentionForm attention_form_of(Words words);

/// Says what changes in an op if the dims of its tensors are put in another order.
enum class Reorder : std::uint8_t {
  refused,      ///< the dims must keep their order
  nothing,      ///< the op doesn't depend on the order
  window,       ///< the attributes are lists with an entry for each dim
  lists,        ///< the attributes are three lists with an entry for each dim
  joined_dim,   ///< the attribute is the number of a dim
  broadcast,    ///< the attribute has the place of each operand dim
  summed_dims,  ///< the attribute lists the dims that the result lacks
  convolution,  ///< each of its tensors has a feature dim of its own
};

}  // namespace weft
