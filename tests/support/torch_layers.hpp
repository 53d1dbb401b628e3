#pragma once
/// Layers against torch: golden files of tests/golden/torch_nn/transformer.py's layer_case().

#include <functional>
#include <string>

#include <weft/module.hpp>

#include "tests/support/torch_ops.hpp"

namespace weft::testing {

/// The layer's parameters take the operands of their names, of those that begin with `prefix`.
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
