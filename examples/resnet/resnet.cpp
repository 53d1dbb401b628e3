/// Trains a ResNet-18 (K. He et al., 2015) on small images. Parameters and buffers have the names
/// of torchvision. Every chip has its own images; batch norms use the statistics of the global
/// batch.

#include "examples/common/digits_data.hpp"
#include "examples/common/port.hpp"

namespace {

using weft::Tensor;

weft::Conv2d::Options conv(std::int64_t in, std::int64_t out, std::int64_t size,
                           std::int64_t stride) {
  return {.in_channels = in,
          .out_channels = out,
          .kernel_size = size,
          .window = {.stride = stride, .padding = size / 2},
          .bias = false};
}

struct BasicBlock : weft::Module {
  weft::Conv2d conv1;
  weft::BatchNorm2d bn1;
  weft::Conv2d conv2;
  weft::BatchNorm2d bn2;
  std::optional<weft::Sequential> downsample;

  BasicBlock(Module& parent, const std::string& name, std::int64_t in, std::int64_t out,
             std::int64_t stride)
      : Module(parent, name),
        conv1(*this, "conv1", conv(in, out, 3, stride)),
        bn1(*this, "bn1", {.num_features = out}),
        conv2(*this, "conv2", conv(out, out, 3, 1)),
        bn2(*this, "bn2", {.num_features = out}) {
    if (stride == 1 && in == out) return;
    downsample.emplace(*this, "downsample");
    downsample->add<weft::Conv2d>(conv(in, out, 1, stride));
    downsample->add<weft::BatchNorm2d>(weft::BatchNormOptions{.num_features = out});
  }

  Tensor operator()(const Tensor& x) const {
    const Tensor y = bn2(conv2(weft::relu(bn1(conv1(x)))));
    return weft::relu(y + (downsample ? (*downsample)(x) : x));
  }
};

struct ResNet : weft::Module {
  using Layer = weft::ModuleList<BasicBlock>;
  weft::Conv2d conv1;
  weft::BatchNorm2d bn1;
  Layer layer1{*this, "layer1"}, layer2{*this, "layer2"};
  Layer layer3{*this, "layer3"}, layer4{*this, "layer4"};
  weft::Linear fc;

  /// `width` is the number of channels in the first layer; ResNet-18 has 64. The first convolution
  /// has stride 1, because the images are already small.
  explicit ResNet(std::int64_t width)
      : conv1(*this, "conv1", conv(1, width, 3, 1)),
        bn1(*this, "bn1", {.num_features = width}),
        fc(*this, "fc", {.in_features = 8 * width, .out_features = digits::kClasses}) {
    std::int64_t in = width;
    for (Layer* layer : {&layer1, &layer2, &layer3, &layer4}) {
      const bool is_first = layer == &layer1;
      const std::int64_t out = is_first ? width : 2 * in;
      layer->add(in, out, std::int64_t{is_first ? 1 : 2});
      layer->add(out, out, std::int64_t{1});
      in = out;
    }
  }

  /// Maps images [N,64] to logits [N,10].
  Tensor operator()(const Tensor& images) const {
    Tensor x = weft::relu(bn1(conv1(weft::reshape(images, {images.dim(0), 1, 8, 8}))));
    for (const Layer* layer : {&layer1, &layer2, &layer3, &layer4}) {
      for (const BasicBlock& block : *layer) x = block(x);
    }
    return fc(weft::flatten(weft::adaptive_avg_pool2d(x, 1), 1));
  }
};

void train(weft::TrainContext& ctx, const weft::Config& config) {
  weft::DeviceLoader batches = examples::digit_batches(config);
  ResNet net(config.at("width"));
  weft::SGD optimizer(net.parameters(),
                      {.lr = config.at("lr"), .momentum = 0.9, .weight_decay = 1e-4});
  auto step = weft::compile([&](const Tensor& x, const Tensor& labels) {
    const Tensor logits = net(x);
    const Tensor loss = weft::cross_entropy(logits, labels);
    optimizer.step(weft::grad(loss, net.parameters()));
    const Tensor hits = weft::equal(weft::argmax(logits, 1), labels);
    return std::tuple(loss, weft::mean(weft::cast(hits, weft::DType::f32)));
  });
  examples::for_steps(ctx, config, batches, [&](const weft::Batch& batch) -> weft::Metrics {
    const auto [loss, accuracy] = step(batch["x"], batch["y"]);
    return {{"loss", loss.item()}, {"accuracy", accuracy.item()}};
  });
}

}  // namespace

int main(int argc, char** argv) {
  auto settings = examples::digit_settings();
  settings.push_back({"width", 16, "channels of the first layer"});
  settings.push_back({"lr", 0.05, "learning rate"});
  return examples::run({.name = "resnet",
                        .about = "Trains a ResNet-18 to read hand-written digits.",
                        .loop = train,
                        .settings = settings},
                       argc, argv);
}
