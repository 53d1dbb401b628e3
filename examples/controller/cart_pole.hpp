#pragma once
/// A pole on a cart, simulated, a job that learns how to balance it, and the actor that does so.

#include <cstdint>
#include <string>

#include <caf/all.hpp>

#include <weft/actor.hpp>
#include <weft/job.hpp>

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

/// Starts a job that learns linear feedback: it publishes "policy" with the tensor "gains", f32[4],
/// until it is stopped. `storage` is the folder of its run's folder; "": the usual one.
weft::Job start_learning(const std::string& storage);
/// The number of steps after which the gains balance the pole.
inline constexpr std::uint64_t kLearnedSteps = 300;

/// Decides with the newest gains of the job.
class Policy {
 public:
  explicit Policy(weft::ActorContext& ctx) : parameters_(ctx.parameters("policy")) {}
  Action act(const Observation& seen) const;
  int process() const;  ///< the process in which the policy runs
  using endpoints = weft::Endpoints<&Policy::act, &Policy::process>;

 private:
  weft::Parameters parameters_;
};

// CAF wants to know that these messages stay within the process.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(Observation)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(Action)
