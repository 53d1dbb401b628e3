#pragma once
/// The task that the program cartpole.cpp learns, which is that of the example actor_learner.

#include "examples/actor_learner/cart_pole.hpp"

template <typename Random>
int forward(const weft::ParameterView& net, const std::array<float, 4>& state, Random& random) {
  return policy_action(net, state, random);
}
