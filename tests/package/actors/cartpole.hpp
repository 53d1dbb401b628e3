#pragma once
/// The task of the program cartpole.cpp, as in the example actor_learner.

#include "examples/actor_learner/cart_pole.hpp"

template <typename Random>
int forward(const weft::ParameterView& net, const std::array<float, 4>& state, Random& random) {
  return policy_action(net, state, random);
}
