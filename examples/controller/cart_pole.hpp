#pragma once
/// A pole on a cart, simulated, and the actor that decides how to balance it.

#include <array>

#include <caf/all.hpp>

#include <weft/actor.hpp>

struct Observation {
  double position = 0;  ///< of the cart, in m
  double speed = 0;     ///< in m/s
  double angle = 0;     ///< of the pole, from upright, in rad
  double turning = 0;   ///< in rad/s
};
struct Action {
  double force = 0;  ///< on the cart, in N
};

class CartPole {
 public:
  static constexpr double kStep = 0.02;  ///< seconds between two actions

  const Observation& state() const { return state_; }
  /// Moves the cart for one step.
  void move(const Action& action);
  bool is_upright() const { return state_.angle > -0.5 && state_.angle < 0.5; }

 private:
  Observation state_{.position = 0, .speed = 0, .angle = 0.2, .turning = 0};
};

/// Decides by linear feedback. Its constructor computes the gains that minimize the sum of squares
/// of state and force (a linear-quadratic regulator).
class Policy {
 public:
  Policy();
  Action act(const Observation& seen) const;
  int process() const;  ///< the process in which the policy runs
  using endpoints = weft::Endpoints<&Policy::act, &Policy::process>;

 private:
  std::array<double, 4> gains_{};
};

// CAF wants to know that these messages stay within the process.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(Observation)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(Action)
