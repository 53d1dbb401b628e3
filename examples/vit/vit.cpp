/// Trains a vision transformer (A. Dosovitskiy et al., 2021), whose tokens are patches of the
/// image.

#include "examples/common/digits_data.hpp"
#include "examples/common/port.hpp"

namespace {

using weft::Tensor;

struct Options {
  std::int64_t size;
  std::int64_t heads;
  std::int64_t layers;
  std::int64_t patch;
};

/// A pre-norm block, as in the paper.
struct Block : weft::Module {
  weft::LayerNorm ln1;
  weft::MultiHeadAttention attention;
  weft::LayerNorm ln2;
  weft::Linear up, down;

  Block(Module& parent, const std::string& name, const Options& options)
      : Module(parent, name),
        ln1(*this, "ln1", {.size = options.size}),
        attention(*this, "attention", {.embed_dim = options.size, .num_heads = options.heads}),
        ln2(*this, "ln2", {.size = options.size}),
        up(*this, "up", {.in_features = options.size, .out_features = 4 * options.size}),
        down(*this, "down", {.in_features = 4 * options.size, .out_features = options.size}) {}

  Tensor operator()(const Tensor& x) const {
    const Tensor y = x + attention(ln1(x));
    return y + down(weft::gelu(up(ln2(y))));
  }
};

struct VisionTransformer : weft::Module {
  static constexpr std::int64_t kSide = 8;
  weft::Conv2d patches;
  weft::Embedding positions;
  weft::Parameter class_token;
  weft::ModuleList<Block> blocks{*this, "blocks"};
  weft::LayerNorm norm;
  weft::Linear head;

  explicit VisionTransformer(const Options& options)
      : patches(*this, "patches",
                {.in_channels = 1,
                 .out_channels = options.size,
                 .kernel_size = options.patch,
                 .window = {.stride = options.patch}}),
        positions(*this, "positions",
                  {.num_embeddings = count(options) + 1,
                   .embedding_dim = options.size,
                   .standard_deviation = 0.02}),
        class_token(add_parameter("class_token",
                                  std::vector<float>(static_cast<std::size_t>(options.size), 0),
                                  {1, 1, options.size})),
        norm(*this, "norm", {.size = options.size}),
        head(*this, "head", {.in_features = options.size, .out_features = digits::kClasses}) {
    for (std::int64_t i = 0; i < options.layers; ++i) blocks.add(options);
  }
  static std::int64_t count(const Options& options) {
    return (kSide / options.patch) * (kSide / options.patch);
  }

  /// Maps images [N,64] to logits [N,10].
  Tensor operator()(const Tensor& images) const {
    const std::int64_t batch = images.dim(0);
    const Tensor grid = patches(weft::reshape(images, {batch, 1, kSide, kSide}));
    const Tensor tokens = weft::transpose(weft::flatten(grid, 2), 1, 2);
    const Tensor first = weft::broadcast_to(class_token, {batch, 1, tokens.dim(2)});
    Tensor x = weft::cat({first, tokens}, 1) + positions.weight;
    for (const Block& block : blocks) x = block(x);
    return head(norm(weft::squeeze(weft::slice(x, 1, 0, 1), 1)));
  }
};

void train(weft::TrainContext& ctx, const weft::Config& config) {
  weft::DeviceLoader batches = examples::digit_batches(config);
  VisionTransformer net({.size = config.at("size"),
                         .heads = config.at("heads"),
                         .layers = config.at("layers"),
                         .patch = config.at("patch")});
  const auto steps = config.at("steps").get<std::uint64_t>();
  const double lr = config.at("lr");
  weft::AdamW optimizer(net.parameters(), {.lr = lr, .eps = 1e-5, .weight_decay = 0.05});
  auto step = weft::compile([&](const Tensor& x, const Tensor& labels) {
    const Tensor loss = weft::cross_entropy(net(x), labels, {.label_smoothing = 0.1});
    optimizer.step(weft::grad(loss, net.parameters()));
    return loss;
  });
  examples::for_steps(ctx, config, batches, [&](const weft::Batch& batch) -> weft::Metrics {
    optimizer.set_lr(
        weft::cosine_schedule(ctx.step(), {.lr = lr, .steps = steps + 1, .warmup = steps / 10}));
    return {{"loss", step(batch["x"], batch["y"]).item()}};
  });
}

}  // namespace

int main(int argc, char** argv) {
  auto settings = examples::digit_settings();
  settings.push_back({"size", 64, "size of a token"});
  settings.push_back({"heads", 4, ""});
  settings.push_back({"layers", 4, ""});
  settings.push_back({"patch", 2, "pixels on one side of a patch; a divisor of 8"});
  settings.push_back({"lr", 2e-3, "the highest learning rate"});
  return examples::run({.name = "vit",
                        .about = "Trains a vision transformer to read hand-written digits.",
                        .loop = train,
                        .settings = settings},
                       argc, argv);
}
