#pragma once
/// Compares layers with torch, whose results are in the golden files that layer_case() in
/// tests/golden/torch_nn/transformer.py writes.

#include <functional>
#include <string>

#include <weft/nn/module.hpp>

#include "tests/support/torch_ops.hpp"

namespace weft::testing {

/// Returns a case that sets each of the layer's parameters to the operand `prefix` + its name, and
/// calls `call`.
template <typename Layer>
OpCase layer_case(const std::string& name, const typename Layer::Options& options,
                  std::function<Tensor(const Layer&, Operands&, const Tensor& index)> call,
                  const std::string& prefix = "") {
  return {name, [=](Operands& of, const Tensor& index) {
            Module root;
            const std::string layer_name = "layer";
            Layer layer(root, layer_name, options);
            layer.eval();
            for (Parameter& own : layer.parameters()) {
              own.assign(of.at(prefix + own.name().substr(layer_name.size() + 1)));
            }
            return call(layer, of, index);
          }};
}

}  // namespace weft::testing
