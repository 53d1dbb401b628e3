#include <weft/nn/multi_head_attention.hpp>

#include <cmath>
#include <utility>

#include <weft/nn/init.hpp>

#include "spmd/nn/init.hpp"
#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

using AttentionLayer = MultiHeadAttention;

/// Returns the options with each 0 replaced by the default for which it stands.
AttentionLayer::Options completed(AttentionLayer::Options options, const std::string& path) {
  const auto is_divisor = [](std::int64_t part, std::int64_t whole) {
    return part >= 1 && whole >= 1 && whole % part == 0;
  };
  if (!is_divisor(options.num_heads, options.embed_dim)) {
    fail(Errc::invalid_argument,
         "MultiHeadAttention '{}': num_heads = {}: expected a divisor of embed_dim {}", path,
         options.num_heads, options.embed_dim);
  }
  if (options.num_kv_heads == 0) options.num_kv_heads = options.num_heads;
  if (options.kdim == 0) options.kdim = options.embed_dim;
  if (options.vdim == 0) options.vdim = options.embed_dim;
  if (!is_divisor(options.num_kv_heads, options.num_heads)) {
    fail(Errc::invalid_argument,
         "MultiHeadAttention '{}': num_kv_heads = {}: expected a divisor of num_heads {}", path,
         options.num_kv_heads, options.num_heads);
  }
  if (options.kdim < 1 || options.vdim < 1) {
    fail(Errc::invalid_argument,
         "MultiHeadAttention '{}': kdim = {} and vdim = {}: expected 1 or "
         "more",
         path, options.kdim, options.vdim);
  }
  if (!(options.dropout >= 0 && options.dropout <= 1)) {
    fail(Errc::invalid_argument, "MultiHeadAttention '{}': dropout = {}: expected 0 to 1", path,
         options.dropout);
  }
  return options;
}

/// Adds a layer's mask to the options. A mask of dtype pred forbids keys; any other mask is added
/// to the scores.
void add_mask(Call& call, AttentionOptions& options, const Tensor& mask, const Shape& shape) {
  const Tensor spread = reshape(mask, shape);
  if (call.type(mask).dtype != DType::pred) {
    options.bias = options.bias.defined() ? options.bias + spread : spread;
    return;
  }
  const Tensor seen = logical_not(spread);
  options.mask = options.mask.defined() ? logical_and(options.mask, seen) : seen;
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)),
      options_(completed(options, path())),
      out_proj(*this, "out_proj",
               {.in_features = options.embed_dim,
                .out_features = options.embed_dim,
                .bias = options.bias}) {
  const std::int64_t size = options_.embed_dim;
  const std::int64_t shared = size / options_.num_heads * options_.num_kv_heads;
  const auto add = [&](const char* part, std::int64_t rows, std::int64_t columns) {
    const double bound = std::sqrt(6.0 / static_cast<double>(rows + columns));
    return begin_uniform(add_parameter(part, 0, {rows, columns}), bound);
  };
  if (options_.kdim == size && options_.vdim == size) {
    in_proj_weight = add("in_proj_weight", size + 2 * shared, size);
  } else {
    q_proj_weight = add("q_proj_weight", size, size);
    k_proj_weight = add("k_proj_weight", shared, options_.kdim);
    v_proj_weight = add("v_proj_weight", shared, options_.vdim);
  }
  if (!options_.bias) return;
  in_proj_bias = add_parameter("in_proj_bias", 0, {size + 2 * shared});
  init::constant(out_proj.bias, 0);
}

MultiHeadAttention::Heads MultiHeadAttention::projected(const Tensor& query, const Tensor& key,
                                                        const Tensor& value) const {
  const std::int64_t size = options_.embed_dim;
  const std::int64_t shared = size / options_.num_heads * options_.num_kv_heads;
  const std::int64_t end = size + 2 * shared;
  const auto split = [&](const Tensor& all, std::int64_t heads) { return split_heads(all, heads); };
  if (in_proj_weight.defined() && query.node() == key.node() && key.node() == value.node()) {
    const Tensor all = linear(query, in_proj_weight, in_proj_bias);
    return {split(slice(all, -1, 0, size), options_.num_heads),
            split(slice(all, -1, size, size + shared), options_.num_kv_heads),
            split(slice(all, -1, size + shared, end), options_.num_kv_heads)};
  }
  const auto project = [&](const Tensor& x, const Parameter& own, std::int64_t from,
                           std::int64_t to) {
    const Tensor weight = own.defined() ? Tensor(own) : slice(in_proj_weight, 0, from, to);
    return linear(x, weight, in_proj_bias.defined() ? slice(in_proj_bias, 0, from, to) : Tensor());
  };
  return {split(project(query, q_proj_weight, 0, size), options_.num_heads),
          split(project(key, k_proj_weight, size, size + shared), options_.num_kv_heads),
          split(project(value, v_proj_weight, size + shared, end), options_.num_kv_heads)};
}

Tensor MultiHeadAttention::operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                                      const Inputs& inputs, std::source_location loc) const {
  Call call("MultiHeadAttention", loc);
  Heads heads = projected(query, key, value);
  const std::int64_t batch = query.dim(0);
  const std::int64_t length = query.dim(1);
  AttentionOptions options{.causal = options_.causal || inputs.is_causal,
                           .segment_ids = inputs.segment_ids,
                           .key_segment_ids = inputs.key_segment_ids,
                           .dropout = is_training() ? options_.dropout : 0,
                           .enable_gqa = true};
  if (inputs.cache != nullptr) {
    if (inputs.segment_ids.defined()) {
      call.refuse(
          "segment_ids and a cache are given, but a cache has one sequence per row: leave out one");
    }
    const KeyValueCache::All all = inputs.cache->extend(heads.k, heads.v, loc);
    heads.k = all.keys;
    heads.v = all.values;
    options.mask = all.mask;
    options.causal = false;  // the mask already contains this
  }
  const std::int64_t keys = heads.k.dim(2);
  if (inputs.attn_mask.defined()) {
    const Shape& shape = call.type(inputs.attn_mask).shape;
    if (shape == Shape{length, keys}) {
      add_mask(call, options, inputs.attn_mask, shape);
    } else if (shape == Shape{batch * options_.num_heads, length, keys}) {
      add_mask(call, options, inputs.attn_mask, {batch, options_.num_heads, length, keys});
    } else {
      call.refuse("the attn_mask {} doesn't fit: expected [{},{}] or [{},{},{}]",
                  call.node(inputs.attn_mask)->label(), length, keys, batch * options_.num_heads,
                  length, keys);
    }
  }
  if (inputs.key_padding_mask.defined()) {
    if (call.type(inputs.key_padding_mask).shape != Shape{batch, keys}) {
      call.refuse("the key_padding_mask {} doesn't fit: expected [{},{}]",
                  call.node(inputs.key_padding_mask)->label(), batch, keys);
    }
    add_mask(call, options, inputs.key_padding_mask, {batch, 1, 1, keys});
  }
  return out_proj(merge_heads(attention(heads.q, heads.k, heads.v, options)));
}

Tensor MultiHeadAttention::operator()(const Tensor& x, std::source_location loc) const {
  return (*this)(x, x, x, {}, loc);
}

Tensor split_heads(Operand x, std::int64_t heads) {
  Call call("split_heads", x.loc());
  const TensorType type = call.type(x);
  if (type.shape.size() != 3 || heads < 1 || type.shape[2] % heads != 0) {
    call.refuse("{} doesn't split into {} heads; expected [batch, length, heads * size]",
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
