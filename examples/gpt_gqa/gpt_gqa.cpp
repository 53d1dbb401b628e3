/// Trains a small modern language model: RMSNorm, rotary positions, grouped-query attention (J.
/// Ainslie et al., 2023), SwiGLU, tied embeddings. When the model writes a text, a cache of keys
/// and values keeps the work per letter constant.

#include <cmath>
#include <deque>
#include <random>

#include <fmt/format.h>

#include "examples/common/port.hpp"
#include "examples/common/text.hpp"

namespace {

using weft::Tensor;

weft::Linear::Options projection(std::int64_t in, std::int64_t out) {
  return {.in_features = in, .out_features = out, .bias = false};
}

struct Block : weft::Module {
  std::int64_t heads, kv_heads, head_size;
  weft::RMSNorm norm1;
  weft::Linear q_proj, k_proj, v_proj, out_proj;
  weft::RMSNorm norm2;
  weft::Linear gate, up, down;

  Block(Module& parent, const std::string& name, const weft::Config& config)
      : Block(parent, name, config.at("size"), config.at("heads"), config.at("kv_heads")) {}
  Block(Module& parent, const std::string& name, std::int64_t size, std::int64_t num_heads,
        std::int64_t num_kv_heads)
      : Module(parent, name),
        heads(num_heads),
        kv_heads(num_kv_heads),
        head_size(size / num_heads),
        norm1(*this, "norm1", {.size = size}),
        q_proj(*this, "q_proj", projection(size, size)),
        k_proj(*this, "k_proj", projection(size, head_size * kv_heads)),
        v_proj(*this, "v_proj", projection(size, head_size * kv_heads)),
        out_proj(*this, "out_proj", projection(size, size)),
        norm2(*this, "norm2", {.size = size}),
        gate(*this, "gate", projection(size, 2 * size)),
        up(*this, "up", projection(size, 2 * size)),
        down(*this, "down", projection(2 * size, size)) {}

  Tensor operator()(const Tensor& x, weft::KeyValueCache* cache) const {
    const Tensor y = x + out_proj(weft::merge_heads(attended(norm1(x), cache)));
    const Tensor z = norm2(y);
    return y + down(weft::silu(gate(z)) * up(z));
  }

 private:
  Tensor attended(const Tensor& x, weft::KeyValueCache* cache) const {
    const Tensor start = cache == nullptr ? Tensor() : Tensor(cache->length());
    const Tensor q = weft::rope(weft::split_heads(q_proj(x), heads), 10000, start);
    const Tensor k = weft::rope(weft::split_heads(k_proj(x), kv_heads), 10000, start);
    const Tensor v = weft::split_heads(v_proj(x), kv_heads);
    if (cache == nullptr) return weft::attention(q, k, v, {.causal = true, .enable_gqa = true});
    const auto all = cache->extend(k, v);
    return weft::attention(q, all.keys, all.values, {.mask = all.mask, .enable_gqa = true});
  }
};

struct Gpt : weft::Module {
  weft::Embedding tokens;
  weft::ModuleList<Block> blocks{*this, "blocks"};
  weft::RMSNorm norm;
  weft::Linear head;

  Gpt(std::int64_t vocabulary, const weft::Config& config)
      : tokens(*this, "tokens",
               {.num_embeddings = vocabulary,
                .embedding_dim = config.at("size"),
                .standard_deviation = 0.02}),
        norm(*this, "norm", {.size = config.at("size")}),
        head(*this, "head", projection(config.at("size"), vocabulary)) {
    for (int i = 0; i < config.at("layers"); ++i) blocks.add(config);
    head.tie(head.weight, tokens.weight);
  }

  /// Maps i32[batch, length] to logits [batch, length, vocabulary]. `caches` (may be null) has one
  /// entry for each block.
  Tensor operator()(const Tensor& ids, std::deque<weft::KeyValueCache>* caches = nullptr) const {
    Tensor x = tokens(ids);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      x = blocks[i](x, caches == nullptr ? nullptr : &(*caches)[i]);
    }
    return head(norm(x));
  }
};

/// Returns a text of `count` letters that begins with letter number 0. Each further letter is drawn
/// with the model's probabilities.
std::string write(const Gpt& net, const letters::Text& text, std::int64_t count,
                  std::uint64_t seed) {
  std::deque<weft::KeyValueCache> caches;
  for (const Block& block : net.blocks) {
    caches.emplace_back(
        weft::KeyValueCache::Options{.num_heads = block.kv_heads,
                                     .length = count,
                                     .head_dim = block.head_size,
                                     .name = fmt::format("cache{}", caches.size())});
  }
  auto next =
      weft::compile([&](const Tensor& id) { return net(id, &caches); }, {.ends_step = false});
  std::mt19937_64 random(seed);
  std::vector<std::int32_t> ids{0};
  while (static_cast<std::int64_t>(ids.size()) < count) {
    const std::vector<std::int32_t> last{ids.back()};
    std::vector<double> weights;
    for (const float logit : next(weft::to_device(last, {1, 1})).to_vector()) {
      weights.push_back(std::exp(static_cast<double>(logit)));
    }
    ids.push_back(std::discrete_distribution<std::int32_t>(weights.begin(), weights.end())(random));
  }
  return text.decode(ids);
}

void train(weft::TrainContext& ctx, const weft::Config& config) {
  const auto length = config.at("length").get<std::int64_t>();
  const auto steps = config.at("steps").get<std::uint64_t>();
  const double lr = config.at("lr");
  const letters::Text text = letters::read_text(config.at("text"), length);
  const auto windows = std::make_shared<const letters::Windows>(text, length);
  weft::DeviceLoader batches(windows,
                             {.sampler = std::make_shared<const letters::RandomWindows>(
                                  windows->size(), config.at("batch"), steps, ctx.seed())});
  Gpt net(static_cast<std::int64_t>(text.letters.size()), config);
  weft::AdamW optimizer(net.parameters(), {.lr = lr, .weight_decay = 0.1});
  auto step = weft::compile([&](const Tensor& ids, const Tensor& next) {
    const Tensor loss = weft::cross_entropy(net(ids), next);
    std::vector<Tensor> grads = weft::grad(loss, net.parameters());
    weft::clip_by_global_norm(grads, 1.0);
    optimizer.step(grads);
    return loss;
  });
  examples::for_steps(ctx, config, batches, [&](const weft::Batch& batch) -> weft::Metrics {
    optimizer.set_lr(
        weft::cosine_schedule(ctx.step(), {.lr = lr, .steps = steps + 1, .warmup = steps / 20}));
    return {{"loss", step(batch["ids"], batch["next"]).item()}};
  });
  const auto count = config.at("sample").get<std::int64_t>();
  if (count > 0) ctx.report({{"sample", write(net, text, count, ctx.seed())}});
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run({.name = "gpt_gqa",
                        .about = "Trains a small modern language model (with grouped-query "
                                 "attention) and lets it write.",
                        .loop = train,
                        .settings = {{"text", TEXT_FILE, ""},
                                     {"size", 128, "size of the embedding"},
                                     {"heads", 8, ""},
                                     {"kv_heads", 2, "number of heads of keys and values"},
                                     {"layers", 4, ""},
                                     {"length", 64, "letters in a window"},
                                     {"batch", 16, "windows per step, over all chips"},
                                     {"lr", 2e-3, "the highest learning rate"},
                                     {"sample", 200, "letters to write at the end"}}},
                       argc, argv);
}
