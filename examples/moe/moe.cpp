/// Trains a language model with a mixture of experts in each layer (GShard: D. Lepikhin et al.,
/// 2021). Experts are sharded over the mesh's axis "expert": a chip sends each letter to the chip
/// that has the letter's expert. Windows of text are sharded over both axes, "data" and "expert".
///
///   moe --workers 2 --chips 2 --topology 1x4    # each chip has a quarter of the experts
///   moe --workers 2 --chips 2 --topology 2x2    # each half of the experts is on two chips

#include <cmath>

#include "examples/common/port.hpp"
#include "examples/common/text.hpp"

namespace {

using weft::Parameter;
using weft::Tensor;
using P = weft::PartitionSpec;

/// Assigns letters to the places of experts. Each expert has a number of places.
struct Routes {
  Tensor dispatch;  ///< [windows, letters, experts, places], 1 if the letter has the place
  Tensor combine;   ///< like `dispatch`, but with the expert's weight in the result instead of 1
  Tensor balance;   ///< a loss; its minimum 1 is reached if all experts get equally many letters
};

/// Assigns each letter to its `choices` likeliest experts. Each expert has `places` places for the
/// letters of a window. Places go to the first choices of all letters before the second choices,
/// and to earlier letters before later ones. A choice for which no place is left is dropped.
Routes route(const Tensor& probability, std::int64_t choices, std::int64_t places) {
  const std::int64_t windows = probability.dim(0);
  const std::int64_t letters = probability.dim(1);
  const std::int64_t experts = probability.dim(2);
  const auto [likeliest, index] = weft::topk(probability, choices);  // [windows, letters, choices]
  const Tensor share = likeliest / weft::sum(likeliest, {-1}, true);
  const Tensor chosen = weft::one_hot(weft::transpose(index, 1, 2), experts);
  // `before` is, for each choice, the number of earlier choices of the same expert.
  const Tensor queue = weft::reshape(chosen, {windows, choices * letters, experts});
  const Tensor before = weft::sum((weft::cumsum(queue, 1) - 1.0) * queue, {-1});
  const Tensor place = weft::cast(weft::equal(weft::reshape(before, {windows, choices, letters, 1}),
                                              weft::iota({places}, 0, weft::DType::f32)),
                                  weft::DType::f32);
  return {.dispatch = weft::einsum("wkle,wklp->wlep", {chosen, place}),
          .combine = weft::einsum("wlk,wkle,wklp->wlep", {share, chosen, place}),
          .balance = static_cast<double>(experts) *
                     weft::sum(weft::mean(chosen, {0, 1, 2}) * weft::mean(probability, {0, 1}))};
}

struct Experts : weft::Module {
  std::int64_t choices;
  double capacity;
  weft::Linear router;
  Parameter up, down;

  Experts(Module& parent, const std::string& name, const weft::Config& config)
      : Module(parent, name),
        choices(config.at("choices")),
        capacity(config.at("capacity")),
        router(*this, "router",
               {.in_features = config.at("size"),
                .out_features = config.at("experts"),
                .bias = false}),
        up(add("up", config, 4, 1)),
        down(add("down", config, 1, 4)) {}

  struct Result {
    Tensor y, balance;
  };
  Result operator()(const Tensor& x, const weft::Mesh& mesh) const {
    const double even = static_cast<double>(choices * x.dim(1)) / static_cast<double>(up.dim(0));
    const auto places = static_cast<std::int64_t>(std::ceil(capacity * even));
    const Routes routes = route(weft::softmax(router(x)), choices, places);
    const Tensor letters = weft::einsum("wlep,wld->wepd", {routes.dispatch, x});
    return {.y = weft::einsum("wlep,wepd->wld", {routes.combine, computed(letters, mesh)}),
            .balance = routes.balance};
  }

 private:
  /// Returns the experts' results for the letters in their places: [windows, experts, places,
  /// size].
  Tensor computed(const Tensor& letters, const weft::Mesh& mesh) const {
    const auto run = [](const Tensor& own, const Tensor& own_up, const Tensor& own_down) {
      // Sends the letters of each expert to the chip that has the expert.
      const Tensor x = weft::all_to_all(own, "expert", 1, 2);
      const Tensor hidden = weft::gelu(weft::einsum("wepd,efd->wepf", {x, own_up}));
      const Tensor y = weft::einsum("wepf,edf->wepd", {hidden, own_down});
      return weft::all_to_all(y, "expert", 2, 1);
    };
    const P first{"expert"};
    return weft::shard_map(run, mesh, {first, first, first}, first)(letters, up, down);
  }
  /// Adds weights [experts, out, in], where `out` and `in` are multiples of the embedding's size.
  Parameter add(const std::string& name, const weft::Config& config, int out, int in) {
    const auto size = config.at("size").get<std::int64_t>();
    const weft::Shape shape{config.at("experts").get<std::int64_t>(), out * size, in * size};
    const std::vector<float> zeros(static_cast<std::size_t>(shape.num_elements()));
    const Parameter made = add_parameter(name, zeros, shape);
    const double bound = 1 / std::sqrt(static_cast<double>(in * size));
    weft::init::uniform(made, -bound, bound);
    return made;
  }
};

struct Block : weft::Module {
  weft::RMSNorm norm1;
  weft::MultiHeadAttention attention;
  weft::RMSNorm norm2;
  Experts experts;

  Block(Module& parent, const std::string& name, const weft::Config& config)
      : Module(parent, name),
        norm1(*this, "norm1", {.size = config.at("size")}),
        attention(
            *this, "attention",
            {.embed_dim = config.at("size"), .num_heads = config.at("heads"), .causal = true}),
        norm2(*this, "norm2", {.size = config.at("size")}),
        experts(*this, "experts", config) {}
};

struct Gpt : weft::Module {
  weft::Embedding tokens, positions;
  weft::ModuleList<Block> blocks{*this, "blocks"};
  weft::RMSNorm norm;
  weft::Linear head;

  Gpt(std::int64_t vocabulary, const weft::Config& config)
      : tokens(*this, "tokens",
               {.num_embeddings = vocabulary,
                .embedding_dim = config.at("size"),
                .standard_deviation = 0.02}),
        positions(*this, "positions",
                  {.num_embeddings = config.at("length"),
                   .embedding_dim = config.at("size"),
                   .standard_deviation = 0.02}),
        norm(*this, "norm", {.size = config.at("size")}),
        head(*this, "head",
             {.in_features = config.at("size"), .out_features = vocabulary, .bias = false}) {
    for (int i = 0; i < config.at("layers"); ++i) blocks.add(config);
  }

  struct Result {
    Tensor logits;
    Tensor balance;  ///< the sum of the balance losses of all layers
  };
  /// Maps i32[windows, length] to logits [windows, length, vocabulary].
  Result operator()(const Tensor& ids, const weft::Mesh& mesh) const {
    Tensor x = tokens(ids) + positions.weight;
    Tensor balance = weft::full({}, 0);
    for (const Block& block : blocks) {
      x = x + block.attention(block.norm1(x));
      const Experts::Result made = block.experts(block.norm2(x), mesh);
      x = x + made.y;
      balance = balance + made.balance;
    }
    return {.logits = head(norm(x)), .balance = balance};
  }
};

void train(weft::TrainContext& ctx, const weft::Config& config) {
  const auto length = config.at("length").get<std::int64_t>();
  const auto steps = config.at("steps").get<std::uint64_t>();
  const double lr = config.at("lr");
  const double share = config.at("balance");
  const letters::Text text = letters::read_text(config.at("text"), length);
  const auto windows = std::make_shared<const letters::Windows>(text, length);
  weft::DeviceLoader batches(windows, {.sampler = std::make_shared<const letters::RandomWindows>(
                                           windows->size(), config.at("batch"), steps, ctx.seed()),
                                       .input_sharding = P{{"expert", "data"}}});
  Gpt net(static_cast<std::int64_t>(text.letters.size()), config);
  weft::AdamW optimizer(net.parameters(), {.lr = lr, .weight_decay = 0.1});
  auto step = weft::compile([&](const Tensor& ids, const Tensor& next) {
    const auto [logits, balance] = net(ids, *ctx.mesh());
    const Tensor loss = weft::cross_entropy(logits, next);
    std::vector<Tensor> grads = weft::grad(loss + share * balance, net.parameters());
    weft::clip_by_global_norm(grads, 1.0);
    optimizer.step(grads);
    return std::tuple(loss, balance);
  });
  examples::for_steps(ctx, config, batches, [&](const weft::Batch& batch) -> weft::Metrics {
    optimizer.set_lr(
        weft::cosine_schedule(ctx.step(), {.lr = lr, .steps = steps + 1, .warmup = steps / 20}));
    const auto [loss, balance] = step(batch["ids"], batch["next"]);
    return {{"loss", loss.item()}, {"balance", balance.item()}};
  });
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run(
      {.name = "moe",
       .about = "Trains a language model with a mixture of experts.",
       .loop = train,
       .settings = {{"text", TEXT_FILE, ""},
                    {"size", 64, "size of the embedding"},
                    {"heads", 4, ""},
                    {"layers", 2, ""},
                    {"experts", 8, "experts in a layer; a multiple of the chips of axis expert"},
                    {"choices", 2, "experts to which each letter goes"},
                    {"capacity", 1.25, "places for letters, relative to equal shares"},
                    {"balance", 0.01, "weight of the balancing loss"},
                    {"length", 64, "letters in a window"},
                    {"batch", 16, "windows per step, over all chips"},
                    {"lr", 2e-3, "the highest learning rate"}},
       .axes = {"data", "expert"}},
      argc, argv);
}
