#pragma once
/// Makes a two-layer perceptron with its backward pass and update, op by op. Its partitioning is
/// easy to predict.

#include <cstdint>
#include <optional>

#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft::testing {

/// Computes x[batch,in] -> linear(fc1) -> relu -> linear(fc2) -> sum of squared differences to y.
/// Weights are [out,in], as in torch. The program only adds, multiplies and compares, so it is
/// exact on small integers.
struct Mlp {
  std::int64_t batch = 8;
  std::int64_t in = 8;
  std::int64_t hidden = 8;
  std::int64_t out = 8;
  /// nullopt leaves a sharding open, so that propagation decides.
  std::optional<PartitionSpec> x, y, fc1, fc1_bias, fc2;
  bool momentum = false;  ///< SGD with momentum, for the two weights
  std::optional<PartitionSpec> fc1_momentum, fc2_momentum;
  int priority = 0;             ///< priority of the specs of weights and momentum
  bool input_gradient = false;  ///< adds an output: the gradient of x

  Program program(const Mesh& mesh) const;
};

}  // namespace weft::testing
