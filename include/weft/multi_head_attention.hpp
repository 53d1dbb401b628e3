#pragma once
/// Multi-head attention as a layer, and the reshapes that it consists of.

#include <cstdint>
#include <source_location>
#include <string>

#include <weft/nn.hpp>

namespace weft {

/// torch.nn.MultiheadAttention(embed_dim, num_heads, batch_first=True) as self-attention, for
/// x[batch, length, embed_dim]. Parameters: in_proj_weight f32[3 * embed_dim, embed_dim],
/// in_proj_bias, out_proj.weight, out_proj.bias. As in torch, in_proj_weight has all heads of q,
/// then those of k and v, so an axis can't shard it by heads: use three Linear for tensor
/// parallelism.
class MultiHeadAttention : public Module {
 public:
  struct Options {
    std::int64_t embed_dim = 0;
    std::int64_t num_heads = 0;
    bool causal = false;
  };
  MultiHeadAttention(Module& parent, std::string name, const Options& options);
  Tensor operator()(const Tensor& x,
                    std::source_location loc = std::source_location::current()) const;

 private:
  Options options_;

 public:
  Parameter in_proj_weight;
  Parameter in_proj_bias;
  Linear out_proj;
};

/// Reshapes x[batch, length, heads * size] to [batch, heads, length, size], for attention().
Tensor split_heads(Operand x, std::int64_t heads);
/// The inverse.
Tensor merge_heads(Operand x);

}  // namespace weft
