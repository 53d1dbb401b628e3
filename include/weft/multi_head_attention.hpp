#pragma once
/// Attention of several heads, as a layer and as what one is made of.

#include <cstdint>
#include <source_location>
#include <string>

#include <weft/nn.hpp>

namespace weft {

/// torch.nn.MultiheadAttention(embed_dim, num_heads, batch_first=True), of itself: in_proj_weight
/// f32[3 * embed_dim, embed_dim], in_proj_bias, out_proj.weight, out_proj.bias. Of
/// x[batch, length, embed_dim]. Its heads lie behind the three of q, k and v, as in torch, so that
/// an axis doesn't cut it by heads: for tensor parallelism take three Linear instead.
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

/// x[batch, length, heads * size] as [batch, heads, length, size], for attention().
Tensor split_heads(Operand x, std::int64_t heads);
/// And back.
Tensor merge_heads(Operand x);

}  // namespace weft
