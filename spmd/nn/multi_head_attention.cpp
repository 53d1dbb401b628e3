#include <weft/multi_head_attention.hpp>

#include <cmath>
#include <utility>

#include "spmd/nn/init.hpp"
#include "spmd/tensor/call.hpp"

namespace weft {

MultiHeadAttention::MultiHeadAttention(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)),
      options_(options),
      out_proj(*this, "out_proj",
               {.in_features = options.embed_dim, .out_features = options.embed_dim}) {
  const auto [size, heads, causal] = options;
  if (heads < 1 || size % heads != 0) {
    fail(Errc::invalid_argument,
         "MultiHeadAttention '{}': num_heads = {}: expected a divisor of embed_dim {}", path(),
         heads, size);
  }
  const double bound = std::sqrt(6.0 / static_cast<double>(4 * size));
  in_proj_weight =
      add_parameter("in_proj_weight", uniform_init(path("in_proj_weight"), 3 * size * size, bound),
                    {3 * size, size});
  in_proj_bias = add_parameter("in_proj_bias",
                               std::vector<float>(static_cast<std::size_t>(3 * size)), {3 * size});
}

Tensor MultiHeadAttention::operator()(const Tensor& x, std::source_location loc) const {
  Call call("MultiHeadAttention", loc);
  const Tensor all = linear(x, in_proj_weight, in_proj_bias);
  const auto part = [&](std::int64_t i) {
    const std::int64_t size = options_.embed_dim;
    return split_heads(slice(all, -1, i * size, (i + 1) * size), options_.num_heads);
  };
  return out_proj(merge_heads(attention(part(0), part(1), part(2), {.causal = options_.causal})));
}

Tensor split_heads(Operand x, std::int64_t heads) {
  Call call("split_heads", x.loc());
  const TensorType type = call.type(x);
  if (type.shape.size() != 3 || heads < 1 || type.shape[2] % heads != 0) {
    call.refuse("{} doesn't split into {} heads; it takes [batch, length, heads * size]",
                type.to_string(), heads);
  }
  const Shape split{type.shape[0], type.shape[1], heads, type.shape[2] / heads};
  return permute(reshape(x, split), {0, 2, 1, 3});
}

Tensor merge_heads(Operand x) {
  Call call("merge_heads", x.loc());
  const TensorType type = call.type(x);
  if (type.shape.size() != 4) {
    call.refuse("{}: expected [batch, heads, length, size]", type.to_string());
  }
  const Shape merged{type.shape[0], type.shape[2], type.shape[1] * type.shape[3]};
  return reshape(permute(x, {0, 2, 1, 3}), merged);
}

}  // namespace weft
