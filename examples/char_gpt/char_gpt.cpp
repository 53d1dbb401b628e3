/// Trains a GPT that learns to write a text, letter by letter. Options choose the
/// annotations, and thereby the kind of parallelism; every choice gives the same losses.

#include <cmath>
#include <fstream>
#include <iterator>
#include <random>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <weft/weft.hpp>

#include "examples/common/checkpoint.hpp"
#include "examples/common/layout.hpp"
#include "examples/common/report.hpp"
#include "examples/common/text.hpp"

namespace {

using weft::Tensor;

struct Options {
  std::string text = TEXT_FILE;
  std::int64_t layers = 4;
  std::int64_t heads = 4;
  std::int64_t size = 128;
  std::int64_t length = 64;
  std::int64_t batch = 16;
  std::uint64_t steps = 500;
  double lr = 2e-3;
  double dropout = 0;
  std::int64_t sample = 200;
  bool tensor_parallel = false;
  bool sequence_parallel = false;
  bool fsdp = false;
  bool zero1 = false;
  bool bf16 = false;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Options, text, layers, heads, size, length, batch, steps, lr,
                                   dropout, sample, tensor_parallel, sequence_parallel, fsdp, zero1,
                                   bf16)

/// A pre-norm block, as in GPT-2.
struct Block : weft::Module {
  std::int64_t heads;
  weft::LayerNorm ln1;
  weft::Linear q_proj, k_proj, v_proj, out_proj;
  weft::LayerNorm ln2;
  weft::Linear up, down;
  weft::Dropout dropout;
  std::function<Tensor(const Tensor&)> residual;  ///< sets the layout of the residual stream

  Block(Module& parent, const std::string& name, const Options& options)
      : Module(parent, name),
        heads(options.heads),
        ln1(*this, "ln1", {.size = options.size}),
        q_proj(*this, "q_proj", square(options)),
        k_proj(*this, "k_proj", square(options)),
        v_proj(*this, "v_proj", square(options)),
        out_proj(*this, "out_proj", square(options)),
        ln2(*this, "ln2", {.size = options.size}),
        up(*this, "up", {.in_features = options.size, .out_features = 4 * options.size}),
        down(*this, "down", {.in_features = 4 * options.size, .out_features = options.size}),
        dropout(*this, "dropout", options.dropout) {}

  static weft::Linear::Options square(const Options& options) {
    return {.in_features = options.size, .out_features = options.size};
  }

  Tensor operator()(Tensor x) const {
    const Tensor normed = ln1(x);
    const auto part = [&](const weft::Linear& projection) {
      return weft::split_heads(projection(normed), heads);
    };
    const Tensor mixed =
        weft::attention(part(q_proj), part(k_proj), part(v_proj), {.causal = true});
    x = residual(x + dropout(out_proj(weft::merge_heads(mixed))));
    return residual(x + dropout(down(weft::gelu(up(ln2(x)), weft::Gelu::tanh))));
  }
};

struct Gpt : weft::Module {
  weft::Embedding tokens;
  weft::Embedding positions;
  std::vector<std::unique_ptr<Block>> blocks;
  weft::LayerNorm norm;
  weft::Linear head;

  Gpt(std::int64_t vocabulary, const Options& options)
      : tokens(*this, "tokens",
               {.num_embeddings = vocabulary,
                .embedding_dim = options.size,
                .standard_deviation = 0.02}),
        positions(*this, "positions",
                  {.num_embeddings = options.length,
                   .embedding_dim = options.size,
                   .standard_deviation = 0.02}),
        norm(*this, "norm", {.size = options.size}),
        head(*this, "head",
             {.in_features = options.size, .out_features = vocabulary, .bias = false}) {
    for (std::int64_t i = 0; i < options.layers; ++i) {
      blocks.push_back(std::make_unique<Block>(*this, fmt::format("block{}", i), options));
    }
  }

  /// Maps i32[batch, length] to logits [batch, length, vocabulary].
  Tensor operator()(const Tensor& ids) const {
    Tensor x = tokens(ids) + positions(weft::iota({ids.dim(1)}, 0));
    for (const auto& block : blocks) x = (*block)(x);
    return head(norm(x));
  }
};

void annotate(Gpt& net, const weft::AdamW& optimizer, const weft::Mesh& mesh,
              const Options& options) {
  using Style = weft::TensorParallelStyle;
  for (const auto& block : net.blocks) {
    block->residual = [&](const Tensor& x) {
      return options.sequence_parallel ? weft::sequence_parallel(x, mesh) : x;
    };
  }
  if (options.tensor_parallel) {
    // The vocabulary's size is seldom a multiple of the number of chips. If it isn't, `tokens` and
    // `head` are padded.
    weft::tensor_parallel(net, mesh,
                          {{"tokens", Style::columns},
                           {"head", Style::columns},
                           {"q_proj", Style::columns},
                           {"k_proj", Style::columns},
                           {"v_proj", Style::columns},
                           {"out_proj", Style::rows},
                           {"up", Style::columns},
                           {"down", Style::rows}});
  }
  if (options.fsdp) weft::fsdp(net, mesh);
  if (options.zero1) weft::zero1(optimizer, mesh);
}

/// Returns a text that begins with the first letter of `text`. Each further letter is drawn with
/// the model's probabilities, at temperature 0.8.
template <typename Logits>
std::string write_on(const letters::Text& text, Logits& logits, const Options& options,
                     std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::int32_t> ids(text.ids.begin(), text.ids.begin() + 1);
  while (static_cast<std::int64_t>(ids.size()) <= options.sample) {
    // The window has the same length for all letters, so that they need only one program. The part
    // after the first `seen` letters isn't used.
    const std::size_t seen = std::min(ids.size(), static_cast<std::size_t>(options.length));
    std::vector<std::int32_t> window(ids.end() - static_cast<std::ptrdiff_t>(seen), ids.end());
    window.resize(static_cast<std::size_t>(options.length));
    const std::vector<float> all = logits(weft::to_device(window, {1, options.length})).to_vector();
    const auto row = std::span(all).subspan((seen - 1) * text.letters.size(), text.letters.size());
    std::vector<double> weights;
    for (const float logit : row) weights.push_back(std::exp(static_cast<double>(logit) / 0.8));
    std::discrete_distribution<std::int32_t> next(weights.begin(), weights.end());
    ids.push_back(next(random));
  }
  return text.decode(ids);
}

void train(weft::TrainContext& ctx, const weft::Config& config) {
  const auto options = config.get<Options>();
  const letters::Text text = letters::read_text(options.text, options.length);
  const weft::Mesh& mesh = *ctx.mesh();
  Gpt net(static_cast<std::int64_t>(text.letters.size()), options);
  weft::AdamW optimizer(net.parameters(), {.lr = options.lr, .weight_decay = 0.1});
  annotate(net, optimizer, mesh, options);

  const auto forward = [&](const Tensor& ids) {
    if (!options.bf16) return net(ids);
    return weft::autocast(weft::DType::bf16, [&] { return net(ids); });
  };
  auto step = weft::compile([&](const Tensor& ids, const Tensor& next) {
    const Tensor loss = weft::cross_entropy(forward(ids), next);
    std::vector<Tensor> grads = weft::grad(loss, net.parameters());
    weft::clip_by_global_norm(grads, 1.0);
    optimizer.step(grads);
    return loss;
  });
  const auto windows = std::make_shared<const letters::Windows>(text, options.length);
  weft::DeviceLoader batches(windows,
                             {.sampler = std::make_shared<const letters::RandomWindows>(
                                  windows->size(), options.batch, options.steps, ctx.seed())});
  weft::CheckpointManager checkpoints;
  examples::StepTimes times;
  while (batches.epoch() == 0) {
    for (const weft::Batch& batch : batches) {
      if (ctx.reached_preemption()) return;
      optimizer.set_lr(weft::cosine_schedule(
          ctx.step(),
          {.lr = options.lr, .steps = options.steps + 1, .warmup = options.steps / 20}));
      const double loss = step(batch["ids"], batch["next"]).item();
      times.step_ended();
      ctx.report({{"step", ctx.step()}, {"loss", loss}});
      if (checkpoints.should_save()) checkpoints.save_async(weft::state_dict(net, optimizer));
      times.begin();
    }
  }
  net.eval();
  auto logits =
      weft::compile([&](const Tensor& ids) { return weft::cast(forward(ids), weft::DType::f32); },
                    {.ends_step = false});
  weft::Metrics last{{"params_digest", examples::digest(net)}, {"step_us", times.summary()}};
  if (options.sample > 0) last["sample"] = write_on(text, logits, options, ctx.seed());
  ctx.report(last);
}

/// Prints a line every few steps, and the model's text at the end.
class Show : public weft::Callback {
 public:
  explicit Show(std::uint64_t steps) : steps_(steps) {}
  void on_start(const weft::JobInfo& job) override {
    fmt::print("job {}\nmesh {}\n", job.id, job.mesh ? job.mesh->to_string() : "none");
    std::fflush(stdout);
  }
  void on_report(const weft::Metrics& metrics) override {
    if (metrics.contains("loss")) {
      const auto step = metrics["step"].get<std::uint64_t>();
      if (step % std::max<std::uint64_t>(steps_ / 20, 1) != 0 && step != 1) return;
      fmt::print("step {:5}/{}  loss {:.4f}\n", step, steps_, metrics["loss"].get<double>());
    } else if (metrics.contains("sample")) {
      fmt::print("{:-<60}\n{}\n{:-<60}\n", "", metrics["sample"].get<std::string>(), "");
    }
    std::fflush(stdout);
  }

 private:
  std::uint64_t steps_;
};

}  // namespace

int main(int argc, char** argv) {
  examples::Layout layout{.workers = 4, .chips = 2, .topology = ""};
  examples::Checkpointing checkpointing;
  Options options;
  std::uint64_t seed = 0;
  std::string json;
  CLI::App app{"Trains a small GPT on the letters of a text, and lets it write."};
  layout.add_to(app);
  checkpointing.add_to(app);
  app.add_option("--text", options.text)->capture_default_str();
  app.add_option("--layers", options.layers)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--heads", options.heads)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--size", options.size, "size of the embedding")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--length", options.length, "letters that the model sees")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--batch", options.batch, "windows per step, over all chips")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--steps", options.steps)->capture_default_str();
  app.add_option("--lr", options.lr, "the highest learning rate")->capture_default_str();
  app.add_option("--dropout", options.dropout)->capture_default_str();
  app.add_option("--sample", options.sample, "letters to write at the end")->capture_default_str();
  app.add_flag("--tp", options.tensor_parallel, "tensor parallelism over axis model");
  app.add_flag("--sp", options.sequence_parallel, "sequence parallelism, in addition to --tp");
  app.add_flag("--fsdp", options.fsdp, "parameters sharded over axis data");
  app.add_flag("--zero1", options.zero1, "optimizer state sharded over axis data");
  app.add_flag("--bf16", options.bf16, "matrix products in bfloat16");
  app.add_option("--seed", seed)->capture_default_str();
  app.add_option("--json", json, "file for the result");
  CLI11_PARSE(app, argc, argv);
  try {
    weft::Trainer trainer(train, {.loop_config = options,
                                  .scaling = layout.scaling(),
                                  .backend = {.spmd = layout.spmd()},
                                  .run = {.name = "char_gpt",
                                          .checkpoint = checkpointing.config(),
                                          .resume = checkpointing.resume,
                                          .callbacks = {std::make_shared<Show>(options.steps)},
                                          .seed = seed}});
    const weft::Result result = trainer.fit();
    if (!json.empty()) std::ofstream(json) << examples::to_json(result) << '\n';
    return result.ok() ? 0 : 1;
  } catch (const weft::Error& e) {
    fmt::print(stderr, "char_gpt: {}\n", e.what());
    return 2;
  }
}
