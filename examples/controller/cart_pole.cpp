#include "examples/controller/cart_pole.hpp"

#include <unistd.h>

#include <array>
#include <cmath>
#include <cstddef>

namespace {

constexpr double kGravity = 9.8;
constexpr double kCart = 1.0;        // kg
constexpr double kPole = 0.1;        // kg
constexpr double kHalfLength = 0.5;  // m, of the pole

using Row = std::array<double, 4>;
using Matrix = std::array<Row, 4>;

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c{};
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      for (std::size_t k = 0; k < 4; ++k) c[i][j] += a[i][k] * b[k][j];
    }
  }
  return c;
}

Row product(const Row& x, const Matrix& a) {
  Row y{};
  for (std::size_t j = 0; j < 4; ++j) {
    for (std::size_t k = 0; k < 4; ++k) y[j] += x[k] * a[k][j];
  }
  return y;
}

Matrix transposed(const Matrix& a) {
  Matrix t{};
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 4; ++j) t[i][j] = a[j][i];
  }
  return t;
}

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

Policy::Policy() {
  // One step near upright: next state = a * state + b * force.
  const double turn_scale = 1 / (kHalfLength * (4.0 / 3 - kPole / (kCart + kPole)));
  const double lever = kPole * kHalfLength / (kCart + kPole);
  const double h = CartPole::kStep;
  const Matrix a{{{1, h, 0, 0},
                  {0, 1, -h * lever * kGravity * turn_scale, 0},
                  {0, 0, 1, h},
                  {0, 0, h * kGravity * turn_scale, 1}}};
  const Row b{0, h * (1 + lever * turn_scale) / (kCart + kPole), 0,
              -h * turn_scale / (kCart + kPole)};
  const Matrix step_cost{{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 10, 0}, {0, 0, 0, 1}}};
  constexpr double kForceCost = 0.1;  // of a squared newton
  Matrix cost = step_cost;
  for (int i = 0; i < 2000; ++i) {  // the Riccati equation, by iteration
    const Row weighted = product(b, cost);
    double scale = kForceCost;
    for (std::size_t k = 0; k < 4; ++k) scale += weighted[k] * b[k];
    gains_ = product(weighted, a);
    for (double& gain : gains_) gain /= scale;
    Matrix closed = a;  // one step with the policy
    for (std::size_t r = 0; r < 4; ++r) {
      for (std::size_t c = 0; c < 4; ++c) closed[r][c] -= b[r] * gains_[c];
    }
    cost = product(transposed(closed), product(cost, closed));
    for (std::size_t r = 0; r < 4; ++r) {
      for (std::size_t c = 0; c < 4; ++c) {
        cost[r][c] += step_cost[r][c] + kForceCost * gains_[r] * gains_[c];
      }
    }
  }
}

Action Policy::act(const Observation& seen) const {
  return {.force = -(gains_[0] * seen.position + gains_[1] * seen.speed + gains_[2] * seen.angle +
                     gains_[3] * seen.turning)};
}

int Policy::process() const { return ::getpid(); }
