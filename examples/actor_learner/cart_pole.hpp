#pragma once
/// CartPole: a pole on a cart, after A. Barto, R. Sutton and C. Anderson (1983), with the limits of
/// CartPole-v1. policy_action(): the action that a small network draws.

#include <array>
#include <cmath>
#include <random>

#include <weft/actor.hpp>

/// An episode lasts at most 500 steps, and ends when the pole falls or the cart leaves the track.
/// The task counts as solved when episodes last 475 steps on average.
class CartPole {
 public:
  static constexpr int kStepsMax = 500;

  std::array<float, 4> state{};  ///< position (m), speed (m/s), angle (rad), angular speed (rad/s)

  template <typename Random>
  void reset(Random& random) {
    std::uniform_real_distribution<float> draw(-0.05F, 0.05F);
    for (float& each : state) each = draw(random);
    steps_ = 0;
  }

  /// Pushes the cart to the left (0) or right (1) for 20 ms. Returns whether the episode ends.
  bool step(int action) {
    constexpr float kGravity = 9.8F;         // m/s^2
    constexpr float kPoleMass = 0.1F;        // kg; the cart has 1 kg
    constexpr float kTotalMass = 1.1F;       // kg
    constexpr float kHalfLength = 0.5F;      // m, of the pole
    constexpr float kForce = 10;             // N
    constexpr float kSeconds = 0.02F;        // the duration of a step
    constexpr float kAngleMax = 0.2094395F;  // 12 degrees
    auto& [x, x_speed, angle, angle_speed] = state;
    const float push = action == 1 ? kForce : -kForce;
    const float cosine = std::cos(angle);
    const float sine = std::sin(angle);
    const float common =
        (push + kPoleMass * kHalfLength * angle_speed * angle_speed * sine) / kTotalMass;
    const float angle_acceleration =
        (kGravity * sine - cosine * common) /
        (kHalfLength * (4.0F / 3 - kPoleMass * cosine * cosine / kTotalMass));
    const float acceleration =
        common - kPoleMass * kHalfLength * angle_acceleration * cosine / kTotalMass;
    x += kSeconds * x_speed;
    x_speed += kSeconds * acceleration;
    angle += kSeconds * angle_speed;
    angle_speed += kSeconds * angle_acceleration;
    return std::abs(x) > 2.4F || std::abs(angle) > kAngleMax || ++steps_ == kStepsMax;
  }

 private:
  int steps_ = 0;
};

inline constexpr int kHidden = 64;

/// Draws an action with the probabilities softmax(b(tanh(a(state)))), where `a` and `b` are the
/// Linear layers of the published network.
template <typename Random>
int policy_action(const weft::ParameterView& net, const std::array<float, 4>& state,
                  Random& random) {
  const auto a_weight = net.get<float>("a.weight", {kHidden, 4});
  const auto a_bias = net.get<float>("a.bias", {kHidden});
  const auto b_weight = net.get<float>("b.weight", {2, kHidden});
  const auto b_bias = net.get<float>("b.bias", {2});
  float left = b_bias[0];
  float right = b_bias[1];
  for (std::size_t j = 0; j < kHidden; ++j) {
    float sum = a_bias[j];
    for (std::size_t i = 0; i < 4; ++i) sum += a_weight[4 * j + i] * state[i];
    const float hidden = std::tanh(sum);
    left += b_weight[j] * hidden;
    right += b_weight[kHidden + j] * hidden;
  }
  const float right_share = 1 / (1 + std::exp(left - right));
  return std::uniform_real_distribution<float>()(random) < right_share ? 1 : 0;
}
