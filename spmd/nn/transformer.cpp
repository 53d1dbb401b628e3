#include <weft/nn/transformer.hpp>

#include <utility>

#include <weft/nn/functional.hpp>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

using LayerOptions = TransformerLayerOptions;

MultiHeadAttention::Options attention_of(const LayerOptions& options) {
  return {.embed_dim = options.d_model,
          .num_heads = options.nhead,
          .dropout = options.dropout,
          .bias = options.bias};
}
Linear::Options widening(const LayerOptions& options) {
  return {options.d_model, options.dim_feedforward, options.bias};
}
Linear::Options narrowing(const LayerOptions& options) {
  return {options.dim_feedforward, options.d_model, options.bias};
}
LayerNorm::Options norm_of(const LayerOptions& options) {
  return {options.d_model, options.layer_norm_eps, options.bias};
}

/// Returns x + part(norm(x)) if `norm_first`, else norm(x + part(x)).
template <typename Part>
Tensor residual(const Tensor& x, const LayerNorm& norm, bool norm_first, Part part) {
  return norm_first ? x + part(norm(x)) : norm(x + part(x));
}

template <typename Layer>
Tensor fed_forward(const Layer& layer, const LayerOptions& options, const Tensor& x) {
  const double p = layer.is_training() ? options.dropout : 0;
  const Tensor inner = dropout(options.activation(layer.linear1(x)), p);
  return dropout(layer.linear2(inner), p);
}

void expect_layers(const char* what, const std::string& path, const TransformerOptions& options) {
  if (options.num_layers >= 1) return;
  fail(Errc::invalid_argument, "{} '{}': num_layers = {}: expected 1 or more", what, path,
       options.num_layers);
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(Module& parent, std::string name,
                                                 const Options& options)
    : Module(parent, std::move(name)),
      options_(options),
      self_attn(*this, "self_attn", attention_of(options)),
      linear1(*this, "linear1", widening(options)),
      linear2(*this, "linear2", narrowing(options)),
      norm1(*this, "norm1", norm_of(options)),
      norm2(*this, "norm2", norm_of(options)) {}

Tensor TransformerEncoderLayer::operator()(const Tensor& x, const EncoderInputs& inputs,
                                           std::source_location loc) const {
  const Call call("TransformerEncoderLayer", loc);
  const double p = is_training() ? options_.dropout : 0;
  const auto attend = [&](const Tensor& y) {
    return dropout(self_attn(y, y, y,
                             {.attn_mask = inputs.mask,
                              .key_padding_mask = inputs.key_padding_mask,
                              .is_causal = inputs.is_causal,
                              .segment_ids = inputs.segment_ids,
                              .cache = inputs.cache}),
                   p);
  };
  const Tensor y = residual(x, norm1, options_.norm_first, attend);
  return residual(y, norm2, options_.norm_first,
                  [&](const Tensor& z) { return fed_forward(*this, options_, z); });
}

TransformerDecoderLayer::TransformerDecoderLayer(Module& parent, std::string name,
                                                 const Options& options)
    : Module(parent, std::move(name)),
      options_(options),
      self_attn(*this, "self_attn", attention_of(options)),
      multihead_attn(*this, "multihead_attn", attention_of(options)),
      linear1(*this, "linear1", widening(options)),
      linear2(*this, "linear2", narrowing(options)),
      norm1(*this, "norm1", norm_of(options)),
      norm2(*this, "norm2", norm_of(options)),
      norm3(*this, "norm3", norm_of(options)) {}

Tensor TransformerDecoderLayer::operator()(const Tensor& x, const Tensor& memory,
                                           const DecoderInputs& inputs,
                                           std::source_location loc) const {
  const Call call("TransformerDecoderLayer", loc);
  const double p = is_training() ? options_.dropout : 0;
  const auto attend = [&](const Tensor& y) {
    return dropout(self_attn(y, y, y,
                             {.attn_mask = inputs.tgt_mask,
                              .key_padding_mask = inputs.tgt_key_padding_mask,
                              .is_causal = inputs.tgt_is_causal,
                              .segment_ids = inputs.tgt_segment_ids,
                              .cache = inputs.cache}),
                   p);
  };
  const auto look = [&](const Tensor& y) {
    return dropout(
        multihead_attn(
            y, memory, memory,
            {.attn_mask = inputs.memory_mask,
             .key_padding_mask = inputs.memory_key_padding_mask,
             .segment_ids = inputs.memory_segment_ids.defined() ? inputs.tgt_segment_ids : Tensor(),
             .key_segment_ids = inputs.memory_segment_ids}),
        p);
  };
  Tensor y = residual(x, norm1, options_.norm_first, attend);
  y = residual(y, norm2, options_.norm_first, look);
  return residual(y, norm3, options_.norm_first,
                  [&](const Tensor& z) { return fed_forward(*this, options_, z); });
}

TransformerEncoder::TransformerEncoder(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)) {
  expect_layers("TransformerEncoder", path(), options);
  for (std::int64_t i = 0; i < options.num_layers; ++i) layers.add(options.layer);
  if (options.norm) norm.emplace(*this, "norm", norm_of(options.layer));
}

Tensor TransformerEncoder::operator()(const Tensor& x, const EncoderInputs& inputs,
                                      std::source_location loc) const {
  const Call call("TransformerEncoder", loc);
  if (inputs.cache != nullptr) call.refuse("each layer needs a cache of its own; call the layers");
  Tensor y = x;
  for (const TransformerEncoderLayer& layer : layers) y = layer(y, inputs, loc);
  return norm ? (*norm)(y) : y;
}

TransformerDecoder::TransformerDecoder(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)) {
  expect_layers("TransformerDecoder", path(), options);
  for (std::int64_t i = 0; i < options.num_layers; ++i) layers.add(options.layer);
  if (options.norm) norm.emplace(*this, "norm", norm_of(options.layer));
}

Tensor TransformerDecoder::operator()(const Tensor& x, const Tensor& memory,
                                      const DecoderInputs& inputs, std::source_location loc) const {
  const Call call("TransformerDecoder", loc);
  if (inputs.cache != nullptr) call.refuse("each layer needs a cache of its own; call the layers");
  Tensor y = x;
  for (const TransformerDecoderLayer& layer : layers) y = layer(y, memory, inputs, loc);
  return norm ? (*norm)(y) : y;
}

}  // namespace weft
