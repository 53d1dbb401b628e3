/// Trains a language model whose layers are sharded over the mesh's axis "stage" as a pipeline
/// (GPipe: Y. Huang et al., 2019). The rows of a batch are sharded over the axis "data", as in any
/// other model.
///
///   pipeline --workers 2 --chips 2 --topology 1x4    # four stages
///   pipeline --workers 2 --chips 2 --topology 2x2    # two stages, each on two chips

#include <cmath>

#include "examples/common/port.hpp"
#include "examples/common/text.hpp"

namespace {

using weft::Parameter;
using weft::Tensor;
using P = weft::PartitionSpec;

/// The weights of all layers, or of the layers of one stage, stacked along dim 0.
struct Layers {
  Tensor norm1, query, key, value, out, norm2, up, down;
};

Tensor through_layer(const Layers& own, const Tensor& x, std::int64_t heads) {
  const Tensor normed = weft::rms_norm(x, own.norm1);
  const auto project = [&](const Tensor& weight) {
    return weft::split_heads(weft::linear(normed, weight, {}), heads);
  };
  const Tensor mixed = weft::attention(weft::rope(project(own.query)), weft::rope(project(own.key)),
                                       project(own.value), {.causal = true});
  const Tensor y = x + weft::linear(weft::merge_heads(mixed), own.out, {});
  return y + weft::linear(weft::gelu(weft::linear(weft::rms_norm(y, own.norm2), own.up, {})),
                          own.down, {});
}

/// Applies the layers one after another.
Tensor through_layers(const Layers& own, const Tensor& x, std::int64_t heads) {
  const auto step = [&](const Tensor& y, const Layers& layer) {
    return std::pair(through_layer(layer, y, heads), std::tuple<>());
  };
  return weft::scan(step, x, own).carry;
}

/// Divides a batch's rows into micro-batches [count, rows / count, ...]. Micro-batch k has rows k,
/// k + count, ..., so that each chip's rows contain a part of every micro-batch.
Tensor micro_batches(const Tensor& x, std::int64_t count) {
  weft::Shape shape = x.shape();
  std::vector<std::int64_t> sizes{shape[0] / count, count};
  for (int dim = 1; dim < shape.size(); ++dim) sizes.push_back(shape[dim]);
  return weft::transpose(weft::reshape(x, weft::Shape(sizes)), 0, 1);
}

/// Runs the pipeline: stage s computes micro-batch t - s at tick t, and passes the result to stage
/// s + 1. The backward pass runs through the pipeline in reverse. At the end, each stage has a part
/// of the results, so all stages share the work of the loss. The number of micro-batches must be a
/// multiple of the number of stages.
Tensor through_pipeline(const Layers& layers, const Tensor& x, std::int64_t heads, bool recompute,
                        const weft::Mesh& mesh) {
  const auto stages = static_cast<int>(mesh.axis_size("stage"));
  const auto run = [&](const Layers& own, const Tensor& batches) {
    const Tensor stage = weft::axis_index("stage");
    const auto tick = [&](const Tensor& arrived, const Tensor& first) {
      const Tensor in = weft::where(weft::equal(stage, 0), first, arrived);
      const auto compute = [&] { return through_layers(own, in, heads); };
      const Tensor y = recompute ? weft::checkpoint(compute) : compute();
      return std::pair(weft::ring_shift(y, "stage"), y);
    };
    // The number of ticks from a micro-batch's entry into the first stage to its exit from the
    // last.
    const int delay = stages - 1;
    const Tensor entering = weft::pad(batches, {{0, delay}, {0, 0}, {0, 0}, {0, 0}});
    const Tensor nothing = weft::full({batches.dim(1), batches.dim(2), batches.dim(3)}, 0);
    const Tensor made = weft::scan(tick, weft::vary(nothing, "stage"), entering).stacked;
    const Tensor last = weft::slice(made, 0, delay, delay + batches.dim(0));
    return weft::reduce_scatter(weft::where(weft::equal(stage, stages - 1), last, 0.0), "stage");
  };
  return weft::shard_map(run, mesh, {P{"stage"}, P{}}, P{"stage"})(layers, x);
}

struct Gpt : weft::Module {
  std::int64_t heads, num_batches;
  bool checkpoint;
  weft::Embedding tokens;
  Layers layers;
  weft::RMSNorm norm;
  weft::Linear head;

  Gpt(std::int64_t vocabulary, const weft::Config& config)
      : heads(config.at("heads")),
        num_batches(config.at("micro_batches")),
        checkpoint(config.at("checkpoint")),
        tokens(*this, "tokens",
               {.num_embeddings = vocabulary,
                .embedding_dim = config.at("size"),
                .standard_deviation = 0.02}),
        layers(make_layers(config.at("layers"), config.at("size"))),
        norm(*this, "norm", {.size = config.at("size")}),
        head(*this, "head",
             {.in_features = config.at("size"), .out_features = vocabulary, .bias = false}) {}

  /// Maps i32[batch, length] to logits [micro-batches, rows, length, vocabulary].
  Tensor operator()(const Tensor& ids, const weft::Mesh& mesh) const {
    const Tensor x = tokens(micro_batches(ids, num_batches));
    return head(norm(through_pipeline(layers, x, heads, checkpoint, mesh)));
  }

 private:
  Layers make_layers(std::int64_t count, std::int64_t size) {
    const auto weight = [&](const std::string& name, std::int64_t out, std::int64_t in) {
      const Parameter made = add(name, {count, out, in});
      const double bound = 1 / std::sqrt(static_cast<double>(in));
      weft::init::uniform(made, -bound, bound);
      return made;
    };
    const auto ones = [&](const std::string& name) {
      const Parameter made = add(name, {count, size});
      weft::init::constant(made, 1);
      return made;
    };
    return {.norm1 = ones("norm1"),
            .query = weight("query", size, size),
            .key = weight("key", size, size),
            .value = weight("value", size, size),
            .out = weight("out", size, size),
            .norm2 = ones("norm2"),
            .up = weight("up", 4 * size, size),
            .down = weight("down", size, 4 * size)};
  }
  Parameter add(const std::string& name, const weft::Shape& shape) {
    const std::vector<float> zeros(static_cast<std::size_t>(shape.num_elements()));
    return add_parameter("layers_" + name, zeros, shape);
  }
};

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
    const Tensor loss =
        weft::cross_entropy(net(ids, *ctx.mesh()), micro_batches(next, net.num_batches));
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
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run(
      {.name = "pipeline",
       .about = "Trains a language model whose layers form a pipeline.",
       .loop = train,
       .settings = {{"text", TEXT_FILE, ""},
                    {"size", 128, "size of the embedding"},
                    {"heads", 8, ""},
                    {"layers", 4, "number of layers; a multiple of the number of stages"},
                    {"length", 64, "letters in a window"},
                    {"batch", 16, "windows per step, over all chips"},
                    {"micro_batches", 4,
                     "micro-batches in a batch; a multiple of the number of stages"},
                    {"checkpoint", false, "compute the layers again for gradients"},
                    {"lr", 2e-3, "the highest learning rate"}},
       .axes = {"data", "stage"}},
      argc, argv);
}
