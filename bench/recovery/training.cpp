#include "bench/recovery/training.hpp"

#include <algorithm>
#include <chrono>

namespace weft::bench {
namespace {

constexpr std::int64_t kPixels = 64;
constexpr std::int64_t kClasses = 10;
constexpr std::int64_t kBatch = 32;

struct Mlp : Module {
  Linear fc1{*this, "fc1", {.in_features = kPixels, .out_features = 128}};
  Linear fc2{*this, "fc2", {.in_features = 128, .out_features = 64}};
  Linear fc3{*this, "fc3", {.in_features = 64, .out_features = kClasses}};

  Tensor operator()(const Tensor& x) const { return fc3(tanh(fc2(tanh(fc1(x))))); }
};

/// The data of a step, which depend only on the step's number.
struct Batch {
  explicit Batch(std::uint64_t step) {
    std::uint64_t word = step + 1;
    for (float& pixel : pixels) {
      word = word * 6364136223846793005U + 1442695040888963407U;
      pixel = static_cast<float>(word >> 40U) * 0x1p-24F;
    }
    for (std::size_t i = 0; i < labels.size(); ++i) {
      labels[i] = static_cast<std::int32_t>((step + i) % kClasses);
    }
  }
  std::vector<float> pixels = std::vector<float>(kBatch * kPixels);
  std::vector<std::int32_t> labels = std::vector<std::int32_t>(kBatch);
};

/// Returns parameters that take `mib` MiB with the two moments that AdamW keeps of each. All chips
/// hold all of them.
std::vector<Parameter> further_parameters(std::int64_t mib) {
  constexpr std::int64_t kMibOfEach = 48;
  constexpr std::int64_t kCopies = 3;
  std::vector<Parameter> all;
  for (std::int64_t left = mib; left > 0; left -= kMibOfEach) {
    const std::int64_t elements = (std::min(left, kMibOfEach) << 20) / kCopies / 4;
    all.push_back(make_parameter(fmt::format("further{}", all.size()), 0, {elements}));
    weft::init::normal(all.back());
  }
  return all;
}

void loop(TrainContext& ctx, const Config& config) {
  Mlp net;
  std::vector<Parameter> parameters = net.parameters();
  const std::vector<Parameter> further =
      further_parameters(config.at("state_mib").get<std::int64_t>());
  parameters.insert(parameters.end(), further.begin(), further.end());
  AdamW optimizer(parameters, {.lr = 1e-3});
  const Mesh& mesh = *ctx.mesh();
  mark_sharding(net.fc1.weight, mesh, {{"model"}, {}});
  mark_sharding(net.fc1.bias, mesh, {{"model"}});
  mark_sharding(net.fc2.weight, mesh, {{}, {"model"}});
  const auto steps = config.at("steps").get<std::uint64_t>();
  std::vector<double> step_us;
  while (ctx.step() < steps) {
    const auto begin = std::chrono::steady_clock::now();
    const Batch batch(ctx.step());
    const Tensor x = to_device(batch.pixels, {kBatch, kPixels});
    const Tensor labels = to_device(batch.labels, {kBatch});
    mark_sharding(x, mesh, {{"data"}, {}});
    mark_sharding(labels, mesh, {{"data"}});
    Tensor loss = cross_entropy(net(x), labels);
    for (const Parameter& each : further) loss = loss + mean(each * each);
    optimizer.step(grad(loss, parameters));
    weft::sync();
    ctx.report({{"step", ctx.step()}, {"loss", loss.item()}});
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    step_us.push_back(took.count());
  }
  ctx.report({{"step_us", step_us}});
}

}  // namespace

Result train(const Training& training, std::vector<std::shared_ptr<Callback>> callbacks) {
  // By default, the mesh of one process would have a single axis.
  const bool one = training.workers < 2;
  const std::int64_t model = one && training.chips % 2 == 0 ? 2 : 1;
  SpmdConfig spmd;
  if (one) spmd = {.mesh_shape = {training.chips / model, model}, .axis_names = {"data", "model"}};
  Trainer trainer(loop,
                  {.loop_config = {{"steps", training.steps}, {"state_mib", training.state_mib}},
                   .scaling = {.num_workers = training.workers, .chips_per_worker = training.chips},
                   .backend = {.spmd = spmd},
                   .run = {.name = "bench",
                           .storage_path = training.storage_path,
                           .failure = training.failure,
                           .callbacks = std::move(callbacks),
                           .check_replicas_every = training.check_replicas_every}});
  return trainer.fit();
}

}  // namespace weft::bench
