#include "tests/support/op_values.hpp"

#include <algorithm>
#include <cmath>

#include "tests/support/random_program.hpp"

namespace weft::testing {

std::vector<Elements> inputs_of(std::span<const TensorType> types) {
  Random random(7);
  std::vector<Elements> inputs;
  for (std::size_t i = 0; i < types.size(); ++i) {
    Elements& elements = inputs.emplace_back();
    for (std::int64_t e = 0; e < types[i].num_elements(); ++e) {
      const auto number = static_cast<double>(random.below(128));
      const double whole = std::fmod(number, 3) + (i == 0 ? 3 : 1);
      const bool is_pred = types[i].dtype == DType::pred;
      elements.push_back(is_floating(types[i].dtype) ? 0.25 + number / 64
                         : is_pred                   ? std::fmod(number, 2)
                                                     : whole);
    }
  }
  return inputs;
}

std::vector<TensorType> input_types(const Program& program) {
  std::vector<TensorType> types;
  for (const ProgramInput& input : program.inputs) types.push_back(program.type(input.value));
  return types;
}

std::vector<TensorType> output_types(const Program& program) {
  std::vector<TensorType> types;
  for (const ProgramOutput& output : program.outputs) types.push_back(program.type(output.value));
  return types;
}

double tolerance(DType dtype) {
  switch (dtype) {
    case DType::bf16: return 0.04;
    case DType::f16: return 0.005;
    case DType::f32: return 2e-5;
    case DType::f64: return 1e-12;
    default: return 0;
  }
}

double tolerance_of(const Program& program) {
  double widest = 0;
  for (const TensorType& type : program.value_types) {
    widest = std::max(widest, tolerance(type.dtype));
  }
  return widest;
}

}  // namespace weft::testing
