#include "tests/support/torch_training.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <weft/nn/conv_layers.hpp>
#include <weft/nn/layers.hpp>
#include <weft/nn/losses.hpp>
#include <weft/nn/multi_head_attention.hpp>
#include <weft/optim/gradients.hpp>
#include <weft/optim/optimizer.hpp>
#include <weft/sharding/presets.hpp>

#include "tests/support/golden_training.hpp"

namespace weft::testing {
namespace {

using Style = TensorParallelStyle;

struct Model : Module {
  virtual Tensor operator()(const Tensor& x) const = 0;
  virtual std::vector<TensorParallelRule> rules() const = 0;
};

struct Mlp : Model {
  Linear fc1{*this, "fc1", {.in_features = 12, .out_features = 16}};
  Linear fc2{*this, "fc2", {.in_features = 16, .out_features = 8}};
  Linear fc3{*this, "fc3", {.in_features = 8, .out_features = 5}};

  Tensor operator()(const Tensor& x) const override { return fc3(relu(fc2(tanh(fc1(x))))); }
  std::vector<TensorParallelRule> rules() const override {
    return {{"fc1", Style::columns}, {"fc2", Style::rows}};
  }
};

struct Cnn : Model {
  Conv2d conv1{*this,
               "conv1",
               {.in_channels = 2, .out_channels = 4, .kernel_size = 3, .window = {.padding = 1}}};
  Conv2d conv2{*this,
               "conv2",
               {.in_channels = 4,
                .out_channels = 6,
                .kernel_size = {3, 5},
                .window = {.stride = 2, .padding = {1, 2}}}};
  Linear fc{*this, "fc", {.in_features = 24, .out_features = 5}};

  Tensor operator()(const Tensor& x) const override {
    const Tensor halved = max_pool2d(relu(conv1(x)), {.kernel_size = 2});
    return fc(reshape(avg_pool2d(relu(conv2(halved)), {.kernel_size = 2}), {-1, 24}));
  }
  std::vector<TensorParallelRule> rules() const override {
    return {{"conv1", Style::columns}, {"conv2", Style::rows}};
  }
};

constexpr std::int64_t kVocabulary = 24;
constexpr std::int64_t kLength = 8;
constexpr std::int64_t kSize = 16;
constexpr std::int64_t kHeads = 2;

Linear::Options square(bool bias = true) {
  return {.in_features = kSize, .out_features = kSize, .bias = bias};
}

struct Attention : Module {
  Attention(Module& parent, std::string name) : Module(parent, std::move(name)) {}
  Linear q_proj{*this, "q_proj", square()};
  Linear k_proj{*this, "k_proj", square(/*bias=*/false)};
  Linear v_proj{*this, "v_proj", square()};
  Linear o_proj{*this, "o_proj", square()};

  Tensor operator()(const Tensor& x) const {
    const auto heads = [&](const Linear& project) { return split_heads(project(x), kHeads); };
    return o_proj(
        merge_heads(attention(heads(q_proj), heads(k_proj), heads(v_proj), {.causal = true})));
  }
};

struct Block : Module {
  using Module::Module;
  LayerNorm ln1{*this, "ln1", {.size = kSize}};
  Attention attn{*this, "attn"};
  LayerNorm ln2{*this, "ln2", {.size = kSize}};
  Linear up{*this, "up", {.in_features = kSize, .out_features = 2 * kSize}};
  Linear down{*this, "down", {.in_features = 2 * kSize, .out_features = kSize}};

  Tensor operator()(const Tensor& x) const {
    const Tensor y = x + attn(ln1(x));
    return y + down(gelu(up(ln2(y)), Gelu::tanh));
  }
};

struct Gpt : Model {
  Embedding wte{*this, "wte", {.num_embeddings = kVocabulary, .embedding_dim = kSize}};
  Embedding wpe{*this, "wpe", {.num_embeddings = kLength, .embedding_dim = kSize}};
  struct Blocks : Module {
    using Module::Module;
    Block first{*this, "0"};
    Block second{*this, "1"};
  } blocks{*this, "blocks"};
  LayerNorm ln_f{*this, "ln_f", {.size = kSize}};
  std::unique_ptr<Linear> head;  // null if the head uses the weight of wte

  explicit Gpt(bool tied) {
    if (tied) return;
    const Linear::Options options{.in_features = kSize, .out_features = kVocabulary, .bias = false};
    head = std::make_unique<Linear>(*this, "head", options);
  }

  Tensor operator()(const Tensor& x) const override {
    const Tensor embedded = wte(x) + wpe(iota({kLength}, 0));
    const Tensor y = ln_f(blocks.second(blocks.first(embedded)));
    const Tensor logits = head ? (*head)(y) : linear(y, wte.weight, {});
    return reshape(logits, {-1, kVocabulary});
  }
  std::vector<TensorParallelRule> rules() const override {
    return {{"wte", Style::columns},    {"q_proj", Style::columns}, {"k_proj", Style::columns},
            {"v_proj", Style::columns}, {"o_proj", Style::rows},    {"up", Style::columns},
            {"down", Style::rows}};
  }
};

std::unique_ptr<Model> make_model(const std::string& name) {
  if (name == "mlp") return std::make_unique<Mlp>();
  if (name == "cnn") return std::make_unique<Cnn>();
  return std::make_unique<Gpt>(/*tied=*/name == "gpt");
}

using AdamWGroup = ParameterGroup<AdamW::Options>;

/// Makes an optimizer with weight decay for weights and a higher learning rate for all other
/// parameters.
std::unique_ptr<Optimizer> make_groups(const std::vector<Parameter>& parameters) {
  AdamWGroup weights{{}, {.lr = 1e-2, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-4}};
  AdamWGroup others = weights;
  weights.options.weight_decay = 0.1;
  others.options.weight_decay = 0;
  others.options.lr = 3e-2;
  for (const Parameter& parameter : parameters) {
    (parameter.shape().size() > 1 ? weights : others).parameters.push_back(parameter);
  }
  return std::make_unique<AdamW>(std::vector{weights, others});
}

std::unique_ptr<Optimizer> make_optimizer(const std::string& name,
                                          const std::vector<Parameter>& parameters) {
  const auto sgd = [&](const SGD::Options& options) {
    return std::make_unique<SGD>(parameters, options);
  };
  if (name == "sgd") return sgd({.lr = 0.1});
  if (name == "clip") return sgd({.lr = 0.5});
  if (name == "groups") return make_groups(parameters);
  if (name == "momentum" || name == "nesterov") {
    return sgd({.lr = 0.05, .momentum = 0.9, .weight_decay = 0.01, .nesterov = name == "nesterov"});
  }
  if (name == "adam") {
    return std::make_unique<Adam>(
        parameters,
        Adam::Options{.lr = 1e-2, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-4, .weight_decay = 0.1});
  }
  return std::make_unique<AdamW>(
      parameters,
      AdamW::Options{.lr = 1e-2, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-4, .weight_decay = 0.1});
}

Safetensors golden_of(const TorchCase& which) {
  return Safetensors(fmt::format("torch/train_{}.safetensors", which.model));
}

bool has_axis(const Mesh* mesh, const std::string& axis) {
  return mesh != nullptr && std::ranges::find(mesh->axis_names(), axis) != mesh->axis_names().end();
}

}  // namespace

std::vector<TorchCase> torch_cases() {
  static constexpr std::array kOptimizers{"sgd",   "momentum", "nesterov", "adam",
                                          "adamw", "groups",   "clip"};
  std::vector<TorchCase> cases;
  for (const char* model : {"mlp", "cnn", "gpt"}) {
    for (const char* optimizer : kOptimizers) cases.push_back({model, optimizer});
  }
  cases.push_back({"gpt_untied", "adamw"});
  return cases;
}

TorchTraining train(const TorchCase& which, const Mesh* mesh) {
  const Safetensors file = golden_of(which);
  const std::unique_ptr<Model> model = make_model(which.model);
  const std::vector<Parameter> parameters = model->parameters();
  if (has_axis(mesh, "model")) tensor_parallel(*model, *mesh, model->rules());
  load_golden(file, "parameter.", parameters);
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(which.optimizer, parameters);
  // The optimizer's parameters are in the order of its groups, not of the model.
  const std::vector<Parameter> updated = optimizer->parameters();
  const bool of_tokens = file.type("x").dtype == DType::i32;
  TorchTraining training;
  for (int step = 0; step < file.type("x").shape[0]; ++step) {
    const Tensor x = of_tokens ? golden_entry<std::int32_t>(file, "x", step)
                               : golden_entry<float>(file, "x", step);
    const Tensor labels = golden_entry<std::int32_t>(file, "labels", step);
    if (has_axis(mesh, "data")) data_parallel(std::array{x, labels}, *mesh);
    const Tensor loss = cross_entropy((*model)(x), reshape(labels, {-1}));
    std::vector<Tensor> grads = grad(loss, updated);
    Tensor norm;
    if (which.optimizer == "clip") norm = clip_by_global_norm(grads, 0.5);
    optimizer->step(grads);
    sync();
    training.losses.push_back(loss.item());
    if (norm.defined()) training.norms.push_back(norm.item());
  }
  for (const Parameter& parameter : parameters) {
    training.parameters.emplace_back(parameter.name(), parameter.to_vector());
  }
  return training;
}

void expect_as_torch(const std::string& what, const std::vector<float>& actual,
                     const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double tolerance = std::max(1e-4 * std::abs(expected[i]), 1e-6);
    EXPECT_NEAR(actual[i], expected[i], tolerance) << what << ", element " << i;
  }
}

void expect_as_torch(const TorchCase& which, const TorchTraining& training) {
  const Safetensors file = golden_of(which);
  const auto expect = [&](const std::string& name, const std::vector<float>& actual) {
    const std::string golden = fmt::format("{}.{}", which.optimizer, name);
    expect_as_torch(golden, actual, file.elements<float>(golden));
  };
  const auto as_float = [](const std::vector<double>& elements) {
    return std::vector<float>(elements.begin(), elements.end());
  };
  expect("loss", as_float(training.losses));
  if (file.contains(which.optimizer + ".norm")) expect("norm", as_float(training.norms));
  EXPECT_EQ(training.parameters.size(), file.names(which.optimizer + ".parameter.").size());
  for (const auto& [name, elements] : training.parameters) expect("parameter." + name, elements);
}

}  // namespace weft::testing
