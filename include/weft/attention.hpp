#pragma once
/// Attention as a function, rotary positions, and the cache of generation. Layers are in
/// multi_head_attention.hpp and transformer.hpp.

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include <weft/module.hpp>
#include <weft/ops.hpp>

namespace weft {

struct AttentionOptions {
  bool causal = false;                         ///< query i sees keys 0 to i
  std::optional<double> scale = std::nullopt;  ///< multiplies the scores; default 1/sqrt(K)
  /// pred that broadcasts to [B,H,S,T]: the keys that each query sees (torch's attn_mask of bool).
  /// A query that sees none has a result of 0.
  Tensor mask{};
  /// Floating, broadcasts to [B,H,S,T]: added, in q's dtype, to the scaled scores (torch's
  /// attn_mask of floats). -inf hides a key, as a mask does.
  Tensor bias{};
  double dropout = 0;  ///< each weight becomes 0 with this probability; see dropout()
  /// k and v have fewer heads than q, a divisor of H: each serves as many neighbouring ones (J.
  /// Ainslie et al., 2023).
  bool enable_gqa = false;
};
/// torch's scaled_dot_product_attention: softmax(q k^T * scale) v for q[B,H,S,K], k[B,H,T,K] and
/// v[B,H,T,E]; returns [B,H,S,E]. One op, whose scores [B,H,S,T] are never in memory; a mask or
/// bias is read as it lies, however it is broadcast, and both become one of their joint shape. The
/// scores are in memory with dropout, and for the gradient of a bias that has one.
Tensor attention(Operand q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {});

struct RingAttentionOptions {
  bool causal = false;                         ///< query i sees keys 0 to i, of all chips
  std::optional<double> scale = std::nullopt;  ///< as in AttentionOptions
  bool enable_gqa = false;                     ///< as in AttentionOptions
};
/// attention() for long contexts (H. Liu et al., 2023), in the function of a shard_map(): each chip
/// of the group has a part of the queries q[B,H,S,K], and of the keys k[B,H,T,K] and values
/// v[B,H,T,E], in the order of the chips. The queries stay, keys and values go around the ring.
/// Returns the chip's part [B,H,S,E]. Scores are in memory for the keys of one chip at a time; a
/// gradient keeps the keys and values that came by, so checkpoint() a layer whose memory counts.
Tensor ring_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AxisNames& axes,
                      const RingAttentionOptions& options = {},
                      std::source_location loc = std::source_location::current());

/// Rotary position embedding (J. Su et al., 2021) of x[...,S,K], K even: at position s the pair
/// (x[i], x[i + K/2]) is rotated by the angle s * base^(-2i/K), with the pairs of GPT-NeoX. The
/// chips compute the angles in f64; layers with equal angles share them. `start`: the first
/// position, i32[], as KeyValueCache::length(); empty: 0.
Tensor rope(Operand x, double base = 10000, const Tensor& start = {});

/// The keys and values of the tokens so far, so that generating the next one takes the work of one.
/// Its size is fixed, so all tokens run one program.
class KeyValueCache {
 public:
  struct Options {
    std::int64_t batch = 1;
    std::int64_t num_heads = 0;  ///< of the keys and values
    std::int64_t length = 0;     ///< most tokens
    std::int64_t head_dim = 0;
    std::string name = "cache";  ///< its own for each layer's
  };
  /// Throws invalid_argument for a size below 1.
  explicit KeyValueCache(const Options& options);

  struct All {
    Tensor keys, values;  ///< [batch, num_heads, length, head_dim]; zeros after the last token
    Tensor mask;          ///< pred[S, length], for attention(): query i sees tokens up to its own
  };
  /// Records that keys and values [batch, num_heads, S, head_dim] of the next S tokens are added.
  /// Tokens beyond `length` end the run, with this call's line.
  All extend(const Tensor& keys, const Tensor& values,
             std::source_location loc = std::source_location::current());
  /// How many tokens it has, i32[].
  const Parameter& length() const { return length_; }
  /// Records that it is empty again.
  void reset(std::source_location loc = std::source_location::current());
  /// "cache.keys", "cache.values" and "cache.length", to shard or save them.
  std::vector<Parameter> state() const { return {keys_, values_, length_}; }

 private:
  Parameter keys_;
  Parameter values_;
  Parameter length_;
};

}  // namespace weft
