/// Uses weft as a user's program does; every supported compiler has to accept this file.

#include <cstdio>
#include <memory>
#include <vector>

#include <weft/weft.hpp>

namespace {

struct Net : weft::Module {
  weft::Linear fc1{*this, "fc1", {.in_features = 16, .out_features = 8}};
  weft::Linear fc2{*this, "fc2", {.in_features = 8, .out_features = 4}};
  weft::Tensor operator()(const weft::Tensor& x) const { return fc2(weft::relu(fc1(x))); }
};

void train(weft::TrainContext& ctx, const weft::Config& config) {
  Net net;
  weft::AdamW optimizer(net.parameters(), {.lr = config.value("lr", 1e-2)});
  const std::vector<float> pixels(16 * 8, 1.0F);
  const std::vector<std::int32_t> digits(8, 3);
  while (ctx.step() < 3 && !ctx.reached_preemption()) {
    weft::Tensor x = weft::to_device(pixels, {8, 16});
    weft::mark_sharding(x, *ctx.mesh(), {{"data"}, {}});
    const weft::Tensor loss = weft::cross_entropy(net(x), weft::to_device(digits, {8}));
    optimizer.step(weft::grad(loss, net.parameters()));
    weft::sync();
    ctx.report({{"loss", loss.item()}});
  }
  ctx.on_each_chip([](weft::Chip& chip) { chip.barrier(); });
}

struct Show : weft::Callback {
  void on_report(const weft::Metrics& metrics) override { std::puts(metrics.dump().c_str()); }
};

}  // namespace

int main() {
  weft::Trainer trainer(train, {.scaling = {.num_workers = 2, .chips_per_worker = 2},
                                .run = {.callbacks = {std::make_shared<Show>()}}});
  const weft::Result result = trainer.fit();
  return result.ok() ? 0 : 1;
}
