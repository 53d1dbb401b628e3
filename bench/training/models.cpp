#include "bench/training/models.hpp"

#include <utility>

#include <fmt/format.h>

namespace weft::bench {
namespace {

constexpr std::int64_t kClasses = 10;

/// Random words that are determined by a number.
class Words {
 public:
  explicit Words(std::uint64_t number) : word_(number + 1) {}
  std::uint64_t next() {
    word_ = word_ * 6364136223846793005U + 1442695040888963407U;
    return word_ >> 33U;
  }
  float next_number() { return static_cast<float>(next() % 4096) / 2048.0F - 1.0F; }

 private:
  std::uint64_t word_;
};

/// Returns numbers from -1 to 1, and labels that are equally frequent.
HostBatch images_of(std::uint64_t number, const Shape& shape) {
  HostBatch batch{.x_shape = shape, .labels_shape = {shape[0]}};
  Words words(number);
  batch.numbers.resize(static_cast<std::size_t>(shape.num_elements()));
  for (float& pixel : batch.numbers) pixel = words.next_number();
  for (std::int64_t i = 0; i < shape[0]; ++i) {
    batch.labels.push_back(static_cast<std::int32_t>(i % kClasses));
  }
  return batch;
}

class Mlp : public Model {
 public:
  explicit Mlp(bool tiny) : hidden_(tiny ? 16 : 1024), batch_(tiny ? 8 : 256) {}

  Tensor loss(const Tensor& x, const Tensor& labels) const override {
    return cross_entropy(fc3_(relu(fc2_(relu(fc1_(x))))), labels);
  }
  HostBatch batch(std::uint64_t number) const override { return images_of(number, {batch_, 784}); }

 private:
  std::int64_t hidden_, batch_;
  Linear fc1_{*this, "fc1", {.in_features = 784, .out_features = hidden_}};
  Linear fc2_{*this, "fc2", {.in_features = hidden_, .out_features = hidden_}};
  Linear fc3_{*this, "fc3", {.in_features = hidden_, .out_features = kClasses}};
};

class Cnn : public Model {
 public:
  explicit Cnn(bool tiny) : channels_(tiny ? 2 : 32), batch_(tiny ? 8 : 128) {}

  Tensor loss(const Tensor& images, const Tensor& labels) const override {
    Tensor x = max_pool2d(relu(conv1_(images)), {.kernel_size = 2});
    x = max_pool2d(relu(conv2_(x)), {.kernel_size = 2});
    return cross_entropy(fc2_(relu(fc1_(reshape(x, {x.dim(0), -1})))), labels);
  }
  HostBatch batch(std::uint64_t number) const override {
    return images_of(number, {batch_, 1, 28, 28});
  }

 private:
  static Conv2d::Options conv(std::int64_t in, std::int64_t out) {
    return {.in_channels = in, .out_channels = out, .kernel_size = 3, .window = {.padding = 1}};
  }

  std::int64_t channels_, batch_;
  Conv2d conv1_{*this, "conv1", conv(1, channels_)};
  Conv2d conv2_{*this, "conv2", conv(channels_, 2 * channels_)};
  Linear fc1_{*this, "fc1", {.in_features = 98 * channels_, .out_features = 4 * channels_}};
  Linear fc2_{*this, "fc2", {.in_features = 4 * channels_, .out_features = kClasses}};
};

struct GptSizes {
  std::int64_t vocabulary = 65, layers = 4, size = 256, heads = 8, length = 128, batch = 32;
};

struct Block : Module {
  std::int64_t heads;
  LayerNorm ln1;
  Linear q_proj, k_proj, v_proj, out_proj;
  LayerNorm ln2;
  Linear up, down;

  Block(Module& parent, std::string name, const GptSizes& sizes)
      : Module(parent, std::move(name)),
        heads(sizes.heads),
        ln1(*this, "ln1", {.size = sizes.size}),
        q_proj(*this, "q_proj", linear(sizes.size, sizes.size)),
        k_proj(*this, "k_proj", linear(sizes.size, sizes.size)),
        v_proj(*this, "v_proj", linear(sizes.size, sizes.size)),
        out_proj(*this, "out_proj", linear(sizes.size, sizes.size)),
        ln2(*this, "ln2", {.size = sizes.size}),
        up(*this, "up", linear(sizes.size, 4 * sizes.size)),
        down(*this, "down", linear(4 * sizes.size, sizes.size)) {}

  static Linear::Options linear(std::int64_t in, std::int64_t out) {
    return {.in_features = in, .out_features = out};
  }

  Tensor operator()(const Tensor& stream) const {
    const Tensor normed = ln1(stream);
    const auto part = [&](const Linear& projection) {
      return split_heads(projection(normed), heads);
    };
    const Tensor mixed = attention(part(q_proj), part(k_proj), part(v_proj), {.causal = true});
    const Tensor x = stream + out_proj(merge_heads(mixed));
    return x + down(gelu(up(ln2(x)), Gelu::tanh));
  }
};

class Gpt : public Model {
 public:
  explicit Gpt(const GptSizes& sizes) : sizes_(sizes) {
    for (std::int64_t i = 0; i < sizes.layers; ++i) {
      blocks_.push_back(std::make_unique<Block>(*this, fmt::format("block{}", i), sizes));
    }
  }

  Tensor loss(const Tensor& ids, const Tensor& labels) const override {
    Tensor x = tokens_(ids) + positions_(iota({ids.dim(1)}, 0));
    for (const auto& block : blocks_) x = (*block)(x);
    return cross_entropy(head_(norm_(x)), labels);
  }
  HostBatch batch(std::uint64_t number) const override {
    HostBatch batch{.x_shape = {sizes_.batch, sizes_.length},
                    .labels_shape = {sizes_.batch, sizes_.length}};
    Words words(number);
    for (std::int64_t i = 0; i < batch.x_shape.num_elements(); ++i) {
      batch.ids.push_back(static_cast<std::int32_t>(words.next() % 65));
      batch.labels.push_back(static_cast<std::int32_t>(batch.ids.back() * 7 % sizes_.vocabulary));
    }
    return batch;
  }

 private:
  GptSizes sizes_;
  Embedding tokens_{*this,
                    "tokens",
                    {.num_embeddings = sizes_.vocabulary,
                     .embedding_dim = sizes_.size,
                     .standard_deviation = 0.02}};
  Embedding positions_{
      *this,
      "positions",
      {.num_embeddings = sizes_.length, .embedding_dim = sizes_.size, .standard_deviation = 0.02}};
  LayerNorm norm_{*this, "norm", {.size = sizes_.size}};
  Linear head_{*this,
               "head",
               {.in_features = sizes_.size, .out_features = sizes_.vocabulary, .bias = false}};
  std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace

std::unique_ptr<Model> make_model(const std::string& name, bool tiny) {
  if (name == "mlp") return std::make_unique<Mlp>(tiny);
  if (name == "cnn") return std::make_unique<Cnn>(tiny);
  if (name != "gpt") fail(Errc::invalid_argument, "no model {}; expected mlp, cnn or gpt", name);
  return std::make_unique<Gpt>(
      tiny ? GptSizes{.layers = 1, .size = 16, .heads = 2, .length = 8, .batch = 4} : GptSizes{});
}

}  // namespace weft::bench
