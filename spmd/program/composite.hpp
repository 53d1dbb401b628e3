#pragma once
/// The attributes of the composite ops: what they compute, beyond their operands.

#include <cstdint>
#include <span>
#include <vector>

namespace weft {

/// Of normalize and normalize_grad. Attributes: {center, bits of eps as f64}.
struct Normalization {
  bool center = true;  ///< subtract the mean first (layer norm); else only scale (rms norm)
  double eps = 1e-5;   ///< added to the mean square; 0 or more
};
std::vector<std::int64_t> to_attrs(const Normalization& normalization);
/// `attrs` of 2 words.
Normalization normalization_of(std::span<const std::int64_t> attrs);

/// Of attention and attention_grad. Attributes: {causal, bits of scale as f64}.
struct AttentionForm {
  bool causal = false;  ///< query i sees keys 0..i
  double scale = 1;     ///< of q k^T
};
std::vector<std::int64_t> to_attrs(const AttentionForm& form);
/// `attrs` of 2 words or more.
AttentionForm attention_form_of(std::span<const std::int64_t> attrs);

}  // namespace weft
