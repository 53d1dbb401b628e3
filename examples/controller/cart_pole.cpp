#include "examples/controller/cart_pole.hpp"

#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <weft/weft.hpp>

namespace {

constexpr double kGravity = 9.8;
constexpr double kCart = 1.0;        // kg
constexpr double kPole = 0.1;        // kg
constexpr double kHalfLength = 0.5;  // m, of the pole

/// Trains the gains on simulated runs of two seconds, with the linear motion that holds near
/// upright. The loss is the logarithm of a mean of squares, because that mean is very large at
/// first, when the pole falls.
void learn(weft::TrainContext& ctx) {
  constexpr double kForceCost = 0.1;  // per squared newton
  // The next state, as a row, is state * motion + force * push.
  constexpr double kTurnScale = 1 / (kHalfLength * (4.0 / 3 - kPole / (kCart + kPole)));
  constexpr double kLever = kPole * kHalfLength / (kCart + kPole);
  constexpr auto h = static_cast<float>(CartPole::kStep);
  constexpr auto kFall = static_cast<float>(h * kGravity * kTurnScale);
  constexpr auto kDrag = static_cast<float>(-kLever * kFall);
  constexpr auto kSpeedUp = static_cast<float>(h * (1 + kLever * kTurnScale) / (kCart + kPole));
  constexpr auto kTurn = static_cast<float>(-h * kTurnScale / (kCart + kPole));
  const std::vector<float> motion_rows{1, 0, 0, 0, h, 1, 0, 0, 0, kDrag, 1, kFall, 0, 0, h, 1};
  const weft::Tensor motion = weft::to_device(motion_rows, {4, 4});
  const weft::Tensor push = weft::to_device(std::vector<float>{0, kSpeedUp, 0, kTurn}, {1, 4});
  const weft::Tensor costs = weft::to_device(std::vector<float>{1, 1, 10, 1}, {4});
  std::mt19937 random(1);
  std::uniform_real_distribution<float> near_upright(-0.3F, 0.3F);
  std::vector<float> starts_elements(std::size_t{64} * 4);
  for (float& element : starts_elements) element = near_upright(random);
  const weft::Tensor starts = weft::to_device(starts_elements, {64, 4});

  const weft::Parameter gains = weft::make_parameter("gains", 0, {4});
  const std::vector parameters{gains};
  weft::Adam adam(parameters, {.lr = 1});
  weft::Publisher policy(ctx, "policy", parameters);
  while (!ctx.reached_preemption()) {
    const auto [end, cost] = weft::scan(
        [&](const weft::Tensor& state, std::tuple<>) {
          const weft::Tensor force = -weft::sum(state * gains, {1}, true);
          const weft::Tensor squares =
              weft::mean(state * state * costs) + weft::mean(force * force) * (kForceCost / 4);
          return std::pair(weft::matmul(state, motion) + force * push, squares);
        },
        starts, std::tuple<>(), {.length = 100});
    adam.step(weft::grad(weft::log(weft::mean(cost)), parameters));
    policy.publish();
    weft::sync();
  }
}
weft::Loop learner{"robot.learn", learn};

}  // namespace

void CartPole::move(const Action& action) {
  const double sine = std::sin(state_.angle), cosine = std::cos(state_.angle);
  const double push =
      (action.force + kPole * kHalfLength * state_.turning * state_.turning * sine) /
      (kCart + kPole);
  const double turn = (kGravity * sine - cosine * push) /
                      (kHalfLength * (4.0 / 3 - kPole * cosine * cosine / (kCart + kPole)));
  const double acceleration = push - kPole * kHalfLength * turn * cosine / (kCart + kPole);
  state_.position += kStep * state_.speed;
  state_.speed += kStep * acceleration;
  state_.angle += kStep * state_.turning;
  state_.turning += kStep * turn;
}

weft::Job start_learning(const std::string& storage) {
  weft::RunConfig run{.name = "controller", .failure = {.max_failures = -1}};
  if (!storage.empty()) run.storage_path = storage;
  return weft::Trainer{learner, {.scaling = {.num_workers = 1}, .run = run}}.start();
}

Action Policy::act(const Observation& seen) const {
  const weft::ParameterView view = parameters_.newest();
  const std::span<const float> gains = view.get<float>("gains", {4});
  return {.force = -(gains[0] * seen.position + gains[1] * seen.speed + gains[2] * seen.angle +
                     gains[3] * seen.turning)};
}

int Policy::process() const { return ::getpid(); }
