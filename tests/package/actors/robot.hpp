#pragma once
/// The robot of the program robot.cpp: a simulated joint, which shall turn to angle 0, and a job
/// that learns from recorded motions how to turn the joint.

#include <cmath>
#include <vector>

#include <weft/actor.hpp>
#include <weft/weft.hpp>

struct Observation {
  double angle = 0;  ///< rad
  double speed = 0;  ///< rad/s
};
struct Action {
  double turn = 0;  ///< rad/s^2
};

namespace robot {

inline constexpr double kTickS = 0.02;
inline Observation joint{.angle = 1, .speed = 0};

/// Learns to turn the joint as its teacher did.
inline void learn(weft::TrainContext& ctx) {
  const weft::Parameter gains = weft::make_parameter("gains", 0, {2});
  const std::vector parameters{gains};
  weft::Adam adam(parameters, {.lr = 1});
  weft::Publisher policy(ctx, "policy", parameters);
  const auto motions =
      weft::to_device(std::vector<float>{1, 0, 0.5F, -1, -0.5F, 1, 0.1F, 0.5F}, {4, 2});
  const auto turns = weft::to_device(std::vector<float>{-100, -30, 30, -20}, {4});
  while (!ctx.reached_preemption()) {
    const auto error = weft::sum(motions * gains, {1}) - turns;
    adam.step(weft::grad(weft::mean(error * error), parameters));
    policy.publish();
    weft::sync();
  }
}
inline weft::Loop learner{"robot.learn", learn};

inline weft::Job start_learning() {
  return weft::Trainer{learner, {.scaling = {.num_workers = 1}}}.start();
}

}  // namespace robot

inline Observation read_joints() { return robot::joint; }
inline bool is_at_rest() { return std::abs(robot::joint.angle) < 0.01; }

inline void drive(const Action& action) {
  robot::joint.speed += robot::kTickS * action.turn;
  robot::joint.angle += robot::kTickS * robot::joint.speed;
}
inline void brake() { robot::joint.speed = 0; }

inline Action forward(const weft::ParameterView& policy, const Observation& seen) {
  const auto gains = policy.get<float>("gains", {2});
  return {.turn = gains[0] * seen.angle + gains[1] * seen.speed};
}
