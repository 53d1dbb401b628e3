#pragma once
/// Reads the batches and parameters in the golden files that train() in tests/golden/torch/make.py
/// writes.

#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <weft/nn/module.hpp>
#include <weft/tensor/tensor.hpp>

#include "tests/support/safetensors.hpp"

namespace weft::testing {

/// Returns element `step` of a golden tensor's first dim, as a tensor.
template <typename Element>
Tensor golden_entry(const Safetensors& file, const std::string& name, int step) {
  const Shape all = file.type(name).shape;
  const Shape shape(std::span<const std::int64_t>(all.begin() + 1, all.end()));
  const std::vector<Element> elements = file.elements<Element>(name);
  const auto size = static_cast<std::size_t>(shape.num_elements());
  return to_device(std::span(elements).subspan(static_cast<std::size_t>(step) * size, size), shape);
}

/// Sets each f32 tensor to the golden tensor `prefix` + its name. Fails if one is missing.
inline void load_golden(const Safetensors& file, const std::string& prefix,
                        std::vector<Parameter> state) {
  EXPECT_EQ(state.size(), file.names(prefix).size());
  for (Parameter& own : state) {
    const std::string name = prefix + own.name();
    if (file.type(name).dtype != DType::f32) continue;
    own.assign(to_device(file.elements<float>(name), file.type(name).shape));
  }
  sync();
}

}  // namespace weft::testing
