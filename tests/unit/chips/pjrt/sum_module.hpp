#pragma once
/// kSum: a program that adds two vectors and writes the sum to the memory of its third argument.

#include <string_view>

namespace weft::testing {

inline constexpr std::string_view kSum = R"(module @sum {
func.func @main(%0: tensor<2xf32>, %1: tensor<2xf32>,
                %2: tensor<2xf32> {tf.aliasing_output = 0 : i64}) -> tensor<2xf32> {
  %3 = "stablehlo.add"(%0, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  "func.return"(%3) : (tensor<2xf32>) -> ()
}
}
)";

}  // namespace weft::testing
