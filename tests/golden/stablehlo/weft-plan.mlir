module @weft_9fbe3ab91b211a0e8d7b9352a22a99ff {
  func.func @main(%arg0: tensor<2x4xf32>, %arg1: tensor<4x4xf32>) -> (tensor<4x4xf32>) {
    %0 = "stablehlo.dot_general"(%arg0, %arg0) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32> loc("train.cpp:41")
    %4 = "stablehlo.all_reduce"(%0) ({
    ^bb0(%1: tensor<f32>, %2: tensor<f32>):
      %3 = "stablehlo.add"(%1, %2) : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("train.cpp:41")
      "stablehlo.return"(%3) : (tensor<f32>) -> ()
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4x4xf32>) -> tensor<4x4xf32> loc("train.cpp:41")
    %5 = "stablehlo.constant"() {value = dense<0.5> : tensor<4x4xf32>} : () -> tensor<4x4xf32> loc("train.cpp:42")
    %6 = "stablehlo.multiply"(%4, %5) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("train.cpp:42")
    %7 = "stablehlo.add"(%arg1, %6) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("train.cpp:42")
    "func.return"(%7) : (tensor<4x4xf32>) -> ()
  }
}
