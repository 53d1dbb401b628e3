#pragma once
/// A simulation of a pole on a cart, a job that learns to balance the pole, and the actor that
/// decides with what was learned.

#include <cstdint>
#include <string>

#include <caf/all.hpp>

#include <weft/actor.hpp>
#include <weft/job.hpp>

struct Observation {
  double position = 0;  ///< the cart's position, in m
  double speed = 0;     ///< the cart's speed, in m/s
  double angle = 0;     ///< the pole's angle from upright, in rad
  double turning = 0;   ///< the pole's angular speed, in rad/s
};
struct Action {
  double force = 0;  ///< the force on the cart, in N
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

/// Starts a job that learns linear feedback. Until it is stopped, the job publishes "policy" with
/// the tensor "gains", f32[4]. `storage` is the folder for its run folder; "": the default.
weft::Job start_learning(const std::string& storage);
/// The number of steps after which the gains balance the pole.
inline constexpr std::uint64_t kLearnedSteps = 300;

/// An actor that chooses actions with the newest gains of the job.
class Policy {
 public:
  explicit Policy(weft::ActorContext& ctx) : parameters_(ctx.parameters("policy")) {}
  Action act(const Observation& seen) const;
  int process() const;  ///< the id of the process in which the policy runs
  using endpoints = weft::Endpoints<&Policy::act, &Policy::process>;

 private:
  weft::Parameters parameters_;
};

// CAF requires this for messages that are only sent within the process.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(Observation)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(Action)
