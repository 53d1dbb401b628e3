/// Trains a generative adversarial net (I. Goodfellow et al., 2014), with two nets, two optimizers
/// and one program per step.

#include "examples/common/digits_data.hpp"
#include "examples/common/port.hpp"

namespace {

using weft::Tensor;

struct Generator : weft::Module {
  std::int64_t noise;
  weft::Linear fc1, fc2, pixels;

  Generator(std::int64_t noise_features, std::int64_t hidden)
      : Module("generator"),
        noise(noise_features),
        fc1(*this, "fc1", {.in_features = noise, .out_features = hidden}),
        fc2(*this, "fc2", {.in_features = hidden, .out_features = hidden}),
        pixels(*this, "pixels", {.in_features = hidden, .out_features = digits::kPixels}) {}

  /// Makes images [count,64] from noise.
  Tensor operator()(std::int64_t count) const {
    const Tensor x = weft::leaky_relu(fc1(weft::randn({count, noise})), 0.2);
    return weft::sigmoid(pixels(weft::leaky_relu(fc2(x), 0.2)));
  }
};

struct Discriminator : weft::Module {
  weft::Linear fc1, fc2, logit;

  explicit Discriminator(std::int64_t hidden)
      : Module("discriminator"),
        fc1(*this, "fc1", {.in_features = digits::kPixels, .out_features = hidden}),
        fc2(*this, "fc2", {.in_features = hidden, .out_features = hidden}),
        logit(*this, "logit", {.in_features = hidden, .out_features = 1}) {}

  /// Returns the likelihood that each image is real, as a logit [N,1].
  Tensor operator()(const Tensor& images) const {
    const Tensor x = weft::leaky_relu(fc1(images), 0.2);
    return logit(weft::leaky_relu(fc2(x), 0.2));
  }
};

/// Returns the loss of logits that should judge all images real, or fake if `real` is false.
Tensor judged(const Tensor& logits, bool real) {
  return weft::binary_cross_entropy_with_logits(logits, weft::full(logits.shape(), real ? 1 : 0));
}

void train(weft::TrainContext& ctx, const weft::Config& config) {
  weft::DeviceLoader batches = examples::digit_batches(config);
  Generator generator(config.at("noise"), config.at("hidden"));
  Discriminator discriminator(config.at("hidden"));
  const weft::Adam::Options adam{.lr = config.at("lr"), .beta1 = 0.5};
  weft::Adam generator_optimizer(generator.parameters(), adam);
  weft::Adam discriminator_optimizer(discriminator.parameters(), adam);

  auto step = weft::compile([&](const Tensor& real) {
    const Tensor fake = generator(real.dim(0));
    // Both gradients are taken before the step changes parameters.
    const Tensor loss_d =
        judged(discriminator(real), true) + judged(discriminator(weft::stop_gradient(fake)), false);
    const Tensor loss_g = judged(discriminator(fake), true);
    const auto grads_d = weft::grad(loss_d, discriminator.parameters());
    const auto grads_g = weft::grad(loss_g, generator.parameters());
    discriminator_optimizer.step(grads_d);
    generator_optimizer.step(grads_g);
    return std::tuple(loss_d, loss_g);
  });
  examples::for_steps(ctx, config, batches, [&](const weft::Batch& batch) -> weft::Metrics {
    const auto [loss_d, loss_g] = step(batch["x"]);
    return {{"loss", loss_d.item()}, {"generator_loss", loss_g.item()}};
  });
}

}  // namespace

int main(int argc, char** argv) {
  auto settings = examples::digit_settings();
  settings.push_back({"noise", 16, "features of the generator's noise"});
  settings.push_back({"hidden", 128, "features of the hidden layers"});
  settings.push_back({"lr", 1e-3, "learning rate of both networks"});
  return examples::run({.name = "gan",
                        .about = "Trains a generator of hand-written digits against a judge.",
                        .loop = train,
                        .settings = settings},
                       argc, argv);
}
