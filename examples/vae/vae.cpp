/// Trains a variational autoencoder (D. Kingma, M. Welling, 2014) for small images. The noise comes
/// from weft's generator, which gives the same numbers on every layout.

#include "examples/common/digits_data.hpp"
#include "examples/common/port.hpp"

namespace {

using weft::Tensor;

struct Vae : weft::Module {
  weft::Linear encode, mean, log_variance;
  weft::Linear decode, pixels;

  explicit Vae(std::int64_t hidden, std::int64_t latent)
      : encode(*this, "encode", {.in_features = digits::kPixels, .out_features = hidden}),
        mean(*this, "mean", {.in_features = hidden, .out_features = latent}),
        log_variance(*this, "log_variance", {.in_features = hidden, .out_features = latent}),
        decode(*this, "decode", {.in_features = latent, .out_features = hidden}),
        pixels(*this, "pixels", {.in_features = hidden, .out_features = digits::kPixels}) {}

  struct Losses {
    Tensor reconstruction;  ///< loss per image, in nats
    Tensor divergence;
  };
  Losses operator()(const Tensor& x) const {
    const Tensor hidden = weft::relu(encode(x));
    const Tensor mu = mean(hidden);
    const Tensor log_var = log_variance(hidden);
    const Tensor z = mu + weft::exp(log_var / 2) * weft::randn(mu.shape());
    const Tensor logits = pixels(weft::relu(decode(z)));
    const auto images = static_cast<double>(x.dim(0));
    return {weft::binary_cross_entropy_with_logits(logits, x, {.reduction = weft::Reduction::sum}) /
                images,
            weft::sum(mu * mu + weft::exp(log_var) - 1 - log_var) / (2 * images)};
  }
};

void train(weft::TrainContext& ctx, const weft::Config& config) {
  weft::DeviceLoader batches = examples::digit_batches(config);
  Vae net(config.at("hidden"), config.at("latent"));
  weft::Adam optimizer(net.parameters(), {.lr = config.at("lr")});
  auto step = weft::compile([&](const Tensor& x) {
    const auto [reconstruction, divergence] = net(x);
    const Tensor loss = reconstruction + divergence;
    optimizer.step(weft::grad(loss, net.parameters()));
    return std::tuple(loss, divergence);
  });
  examples::for_steps(ctx, config, batches, [&](const weft::Batch& batch) -> weft::Metrics {
    const auto [loss, divergence] = step(batch["x"]);
    return {{"loss", loss.item()}, {"divergence", divergence.item()}};
  });
}

}  // namespace

int main(int argc, char** argv) {
  auto settings = examples::digit_settings();
  settings.push_back({"hidden", 128, "features of the hidden layers"});
  settings.push_back({"latent", 8, "features of the code"});
  settings.push_back({"lr", 2e-3, "learning rate"});
  return examples::run({.name = "vae",
                        .about = "Trains a variational autoencoder of hand-written digits.",
                        .loop = train,
                        .settings = settings},
                       argc, argv);
}
