/// The second program of docs/decisions/0099: actors that play, and a loop that learns.

#include <weft/actor.hpp>
#include <weft/weft.hpp>

#include "tests/package/actors/cartpole.hpp"  // CartPole, forward()

struct Net : weft::Module {
  weft::Linear a{*this, "a", {4, 64}}, b{*this, "b", {64, 2}};
  weft::Tensor operator()(const weft::Tensor& x) const { return b(weft::tanh(a(x))); }
};
using weft::DType;
const std::vector<weft::Field> kRow{
    {"state", {DType::f32, {4}}}, {"action", {DType::i32, {}}}, {"return", {DType::f32, {}}}};

void learn(weft::TrainContext& ctx) {
  Net net;
  weft::Adam adam(net.parameters(), {.lr = 0.01});
  weft::Publisher policy(ctx, "policy", net.parameters());
  weft::DeviceLoader batches(weft::experience(ctx, "steps", kRow, {.max_lag = 4}),
                             {.batch_size = 512, .device_prefetch_size = 1});
  for (const weft::Batch& batch : batches) {
    const auto surprise = weft::cross_entropy(net(batch["state"]), batch["action"],
                                              {.reduction = weft::Reduction::none});
    adam.step(weft::grad(weft::mean(surprise * batch["return"]), net.parameters()));
    policy.publish();  // takes effect when the step ends
    if (ctx.step() == 300) return;
  }
}
static weft::Loop learner{"cartpole.learn", learn};

class Rollout {
 public:
  explicit Rollout(weft::ActorContext& ctx)
      : policy_(ctx.parameters("policy")), steps_(ctx.experience("steps")), rng_(ctx.seed()) {}
  void work() {                                         // runs while no message waits
    const weft::ParameterView view = policy_.newest();  // pinned, not copied
    std::vector<std::array<float, 4>> states;
    std::vector<int> actions;
    env_.reset(rng_);
    do {
      states.push_back(env_.state);
      actions.push_back(forward(view, env_.state, rng_));  // reads view.get<float>("a.weight")
    } while (!env_.step(actions.back()));
    length_ = int(states.size());
    weft::Rows rows = steps_.loan(length_, view.version());  // waits if the learner is behind
    float value = 0;
    for (int t = length_ - 1; t >= 0; --t) {
      value = 1 + 0.99f * value;
      std::ranges::copy(states[t], rows.get<float>("state", t).begin());
      rows.get<std::int32_t>("action", t)[0] = actions[t];
      rows.get<float>("return", t)[0] = value / 20 - 1;
    }
    rows.publish();
  }
  int length() const { return length_; }
  using endpoints = weft::Endpoints<&Rollout::length>;

 private:
  weft::Parameters policy_;
  weft::ExperienceWriter steps_;
  std::mt19937_64 rng_;
  CartPole env_;
  int length_ = 0;
};
static weft::ActorType<Rollout> rollout{"cartpole.rollout"};

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
  weft::ActorSystem system{{.name = "cartpole"}};
  weft::Trainer trainer{
      learner,
      {.scaling = {.num_workers = 2}, .run = {.failure = {.max_failures = 3}}, .actors = &system}};
  weft::Job job = trainer.start();
  const auto rollouts = system.spawn(rollout, {.count = 8,
                                               .place = weft::processes(4),
                                               .own_thread = true,
                                               .lives_with = &job,
                                               .supervision = {.max_restarts = -1}});
  while (!job.wait_for(std::chrono::seconds(1))) {
    for (const auto& length : rollouts.call<&Rollout::length>().outcomes()) {
      if (length.ok()) fmt::print("{} ", length.value());
    }
  }
  return job.result().ok() ? 0 : 1;
}
