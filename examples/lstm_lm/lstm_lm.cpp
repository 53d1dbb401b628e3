/// Trains a language model of letters with LSTM layers, like torch's word_language_model. For any
/// length of the windows, the program contains the time steps only once, as a scan.

#include <cmath>

#include "examples/common/port.hpp"
#include "examples/common/text.hpp"

namespace {

using weft::Tensor;

struct Model : weft::Module {
  weft::Embedding tokens;
  weft::Dropout dropout;
  weft::LSTM lstm;
  weft::Linear head;

  Model(std::int64_t vocabulary, const weft::Config& config)
      : tokens(*this, "tokens", {.num_embeddings = vocabulary, .embedding_dim = config.at("size")}),
        dropout(*this, "dropout", config.at("dropout")),
        lstm(*this, "lstm",
             {.input_size = config.at("size"),
              .hidden_size = config.at("size"),
              .num_layers = config.at("layers"),
              .batch_first = true,
              .dropout = config.at("dropout")}),
        head(*this, "head", {.in_features = config.at("size"), .out_features = vocabulary}) {}

  /// Maps i32[batch, length] to logits [batch, length, vocabulary].
  Tensor operator()(const Tensor& ids) const {
    return head(dropout(lstm(dropout(tokens(ids))).output));
  }
};

void train(weft::TrainContext& ctx, const weft::Config& config) {
  const auto length = config.at("length").get<std::int64_t>();
  const auto steps = config.at("steps").get<std::uint64_t>();
  const letters::Text text = letters::read_text(config.at("text"), length);
  const auto windows = std::make_shared<const letters::Windows>(text, length);
  weft::DeviceLoader batches(windows,
                             {.sampler = std::make_shared<const letters::RandomWindows>(
                                  windows->size(), config.at("batch"), steps, ctx.seed())});
  Model net(static_cast<std::int64_t>(text.letters.size()), config);
  weft::Adam optimizer(net.parameters(), {.lr = config.at("lr")});
  auto step = weft::compile([&](const Tensor& ids, const Tensor& next) {
    const Tensor loss = weft::cross_entropy(net(ids), next);
    std::vector<Tensor> grads = weft::grad(loss, net.parameters());
    weft::clip_by_global_norm(grads, 0.25);
    optimizer.step(grads);
    return loss;
  });
  examples::for_steps(ctx, config, batches, [&](const weft::Batch& batch) -> weft::Metrics {
    const double loss = step(batch["ids"], batch["next"]).item();
    return {{"loss", loss}, {"perplexity", std::exp(loss)}};
  });
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run({.name = "lstm_lm",
                        .about = "Trains an LSTM on the letters of a text.",
                        .loop = train,
                        .settings = {{"text", TEXT_FILE, ""},
                                     {"size", 128, "size of the embedding and of the layers"},
                                     {"layers", 2, ""},
                                     {"length", 64, "letters in a window"},
                                     {"batch", 16, "windows per step, over all chips"},
                                     {"dropout", 0.0, ""},
                                     {"lr", 2e-3, "learning rate"}}},
                       argc, argv);
}
