/// Learns to balance a pole by policy gradients (REINFORCE). Actors in processes of their own play
/// episodes with the newest parameters, and write the episodes as rows. A training loop on a mesh
/// reads the rows, and publishes its parameters after each step.
///
///   actor_learner [--steps N] [--workers N] [--rollouts N] [--processes N] [--until LENGTH]
///                 [--storage-path FOLDER]

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <weft/actor.hpp>
#include <weft/weft.hpp>

#include "examples/actor_learner/cart_pole.hpp"

namespace {

using weft::DType;
const std::vector<weft::Field> kRow{
    {"state", {DType::f32, {4}}}, {"action", {DType::i32, {}}}, {"return", {DType::f32, {}}}};

struct Net : weft::Module {
  weft::Linear a{*this, "a", {.in_features = 4, .out_features = kHidden}};
  weft::Linear b{*this, "b", {.in_features = kHidden, .out_features = 2}};
  weft::Tensor operator()(const weft::Tensor& x) const { return b(weft::tanh(a(x))); }
};

void learn(weft::TrainContext& ctx, const weft::Config& config) {
  const std::uint64_t steps = config.at("steps");
  Net net;
  weft::Adam adam(net.parameters(), {.lr = 0.01});
  weft::Publisher policy(ctx, "policy", net.parameters());
  weft::DeviceLoader batches(weft::experience(ctx, "steps", kRow, {.max_lag = 4}),
                             {.batch_size = 1024, .device_prefetch_size = 1});
  for (const weft::Batch& batch : batches) {
    const auto surprise = weft::cross_entropy(net(batch["state"]), batch["action"],
                                              {.reduction = weft::Reduction::none});
    adam.step(weft::grad(weft::mean(surprise * batch["return"]), net.parameters()));
    policy.publish();  // takes effect when the step ends; doesn't wait for readers
    if (ctx.step() + 1 == steps || ctx.reached_preemption()) return;
  }
}
weft::Loop learner{"cartpole.learn", learn};

class Rollout {
 public:
  explicit Rollout(weft::ActorContext& ctx)
      : policy_(ctx.parameters("policy")), steps_(ctx.experience("steps")), random_(ctx.seed()) {}

  void work() {                                        // called while no message waits
    const weft::ParameterView net = policy_.newest();  // a view, not a copy
    std::vector<std::array<float, 4>> states;
    std::vector<int> actions;
    env_.reset(random_);
    do {
      states.push_back(env_.state);
      actions.push_back(policy_action(net, env_.state, random_));
    } while (!env_.step(actions.back()));
    lengths_[episodes_++ % lengths_.size()] = static_cast<int>(states.size());
    // Waits if the learner hasn't used earlier rows yet.
    weft::Rows rows = steps_.loan(static_cast<std::int64_t>(states.size()), net.version());
    float value = 0;
    for (std::int64_t t = rows.size() - 1; t >= 0; --t) {
      value = 1 + 0.99F * value;
      std::ranges::copy(states[static_cast<std::size_t>(t)], rows.get<float>("state", t).begin());
      rows.get<std::int32_t>("action", t)[0] = actions[static_cast<std::size_t>(t)];
      rows.get<float>("return", t)[0] = value / 20 - 1;
    }
    rows.publish();
  }
  /// Returns the lengths of the last episodes.
  std::vector<int> lengths() const {
    const auto count = std::min<std::uint64_t>(episodes_, lengths_.size());
    return {lengths_.begin(), lengths_.begin() + static_cast<std::ptrdiff_t>(count)};
  }
  using endpoints = weft::Endpoints<&Rollout::lengths>;

 private:
  weft::Parameters policy_;
  weft::ExperienceWriter steps_;
  std::mt19937_64 random_;
  CartPole env_;
  std::array<int, 8> lengths_{};
  std::uint64_t episodes_ = 0;
};
weft::ActorType<Rollout> rollout{"cartpole.rollout"};

struct Options {
  std::uint64_t steps = 5000;
  int workers = 2;
  int rollouts = 4;
  int processes = 2;
  std::string storage_path = "~/weft_runs";
  double until = 475;  ///< the mean length of episodes at which the learner stops
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{"Learns to balance a pole, with actors that play and a loop that learns"};
  app.add_option("--steps", options.steps, "Steps of the learner, at most")->capture_default_str();
  app.add_option("--workers", options.workers, "Worker processes of the learner")
      ->capture_default_str();
  app.add_option("--rollouts", options.rollouts, "Actors that play")->capture_default_str();
  app.add_option("--processes", options.processes, "Processes of these actors")
      ->capture_default_str();
  app.add_option("--until", options.until, "Stop at this mean length of the last episodes")
      ->capture_default_str();
  app.add_option("--storage-path", options.storage_path, "Folder of the run's folder")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return options;
}

/// Returns the mean length of the last episodes of all actors that answer; 0 before the first
/// episode.
double mean_length(const weft::ActorMesh<Rollout>& rollouts) {
  double sum = 0;
  int count = 0;
  for (const auto& lengths : rollouts.with({.timeout_s = 5}).call<&Rollout::lengths>().outcomes()) {
    if (!lengths.ok()) continue;  // an actor that is being restarted, or a job that has ended
    for (const int length : lengths.value()) {
      sum += length;
      ++count;
    }
  }
  return count == 0 ? 0 : sum / count;
}

}  // namespace

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
  const Options options = parse(argc, argv);
  weft::ActorSystem system{{.name = "cartpole"}};
  weft::Job job = weft::Trainer{learner,
                                {.loop_config = {{"steps", options.steps}},
                                 .scaling = {.num_workers = options.workers},
                                 .run = {.name = "actor_learner",
                                         .storage_path = options.storage_path,
                                         .failure = {.max_failures = -1}}}}
                      .start();
  fmt::print("job {}\n", job.info().id);
  std::fflush(stdout);
  const auto rollouts = system.spawn(
      rollout,
      {.count = options.rollouts,
       .place = weft::processes(options.processes),
       .own_thread = true,
       .lives_with = &job,
       .supervision = {.max_restarts = -1, .within_s = 2, .then = weft::ActorGivesUp::stop}});
  const weft::Parameters policy(job.info().id, "policy");
  while (!job.wait_for(std::chrono::milliseconds(500))) {
    const double length = mean_length(rollouts);
    fmt::print("step {}: episodes last {:.1f} steps\n", policy.version().value_or(0), length);
    std::fflush(stdout);
    if (length >= options.until) job.stop();
  }
  const weft::Result result = job.result();
  if (!result.ok() && result.ended_by != weft::EndedBy::stop) {
    fmt::print("the learner has failed: {}\n", result.error->message);
    return 1;
  }
  fmt::print("the learner has ended after {} steps and {} losses of workers\n",
             policy.version().value_or(0), result.failures.size());
  return 0;
}
