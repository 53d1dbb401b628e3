module @weft_a_loop {
  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xi32>, %arg2: tensor<i32>) -> (tensor<4xf32>, tensor<2xi32>) {
    %0 = "stablehlo.constant"() {value = dense<[-1, 0]> : tensor<2xi32>} : () -> tensor<2xi32>
    %1 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %2 = "stablehlo.constant"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
    %48:5 = "stablehlo.while"(%1, %arg0, %arg2, %0, %2) ({
    ^bb0(%3: tensor<i32>, %4: tensor<4xf32>, %5: tensor<i32>, %6: tensor<2xi32>, %7: tensor<i1>):
      "stablehlo.return"(%7) : (tensor<i1>) -> ()
    }, {
    ^bb0(%8: tensor<i32>, %9: tensor<4xf32>, %10: tensor<i32>, %11: tensor<2xi32>, %12: tensor<i1>):
      %13 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
      %14 = "stablehlo.compare"(%8, %13) {compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %47:4 = "stablehlo.if"(%14) ({
        %15:2 = "stablehlo.custom_call"(%9, %10) {api_version = 4 : i32, backend_config = {collective = 0 : i64}, call_target_name = "weft.collective", has_side_effect = true, operand_layouts = [dense<[0]> : tensor<1xindex>, dense<> : tensor<0xindex>], result_layouts = [dense<[0]> : tensor<1xindex>, dense<> : tensor<0xindex>]} : (tensor<4xf32>, tensor<i32>) -> (tensor<4xf32>, tensor<i32>)
        %16 = "stablehlo.constant"() {value = dense<0> : tensor<4xi32>} : () -> tensor<4xi32>
        %17 = "stablehlo.compare"(%arg1, %16) {compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
        %18 = "stablehlo.constant"() {value = dense<6> : tensor<4xi32>} : () -> tensor<4xi32>
        %19 = "stablehlo.compare"(%arg1, %18) {compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
        %20 = "stablehlo.or"(%17, %19) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
        %21 = "stablehlo.constant"() {value = dense<-100> : tensor<4xi32>} : () -> tensor<4xi32>
        %22 = "stablehlo.compare"(%arg1, %21) {compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction NE>} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
        %23 = "stablehlo.and"(%20, %22) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
        %24 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<4xi32>
        %25 = "stablehlo.constant"() {value = dense<4> : tensor<4xi32>} : () -> tensor<4xi32>
        %26 = "stablehlo.select"(%23, %24, %25) : (tensor<4xi1>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %27 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
        %31 = "stablehlo.reduce"(%26, %27) ({
        ^bb0(%28: tensor<i32>, %29: tensor<i32>):
          %30 = "stablehlo.minimum"(%28, %29) : (tensor<i32>, tensor<i32>) -> tensor<i32>
          "stablehlo.return"(%30) : (tensor<i32>) -> ()
        }) {dimensions = array<i64: 0>} : (tensor<4xi32>, tensor<i32>) -> tensor<i32>
        %32 = "stablehlo.dynamic_slice"(%arg1, %31) {slice_sizes = array<i64: 1>} : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
        %33 = "stablehlo.reshape"(%32) : (tensor<1xi32>) -> tensor<i32>
        %34 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
        %35 = "stablehlo.compare"(%31, %34) {compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %36 = "stablehlo.constant"() {value = dense<6> : tensor<1xi32>} : () -> tensor<1xi32>
        %37 = "stablehlo.reshape"(%33) : (tensor<i32>) -> tensor<1xi32>
        %38 = "stablehlo.concatenate"(%36, %37) {dimension = 0 : i64} : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
        %39 = "stablehlo.slice"(%11) {start_indices = array<i64: 0>, limit_indices = array<i64: 1>, strides = array<i64: 1>} : (tensor<2xi32>) -> tensor<1xi32>
        %40 = "stablehlo.reshape"(%39) : (tensor<1xi32>) -> tensor<i32>
        %41 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
        %42 = "stablehlo.compare"(%40, %41) {compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %43 = "stablehlo.and"(%42, %35) : (tensor<i1>, tensor<i1>) -> tensor<i1>
        %44 = "stablehlo.select"(%43, %38, %11) : (tensor<i1>, tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
        %45 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
        %46 = "stablehlo.add"(%8, %45) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        "stablehlo.return"(%46, %15#0, %15#1, %44) : (tensor<i32>, tensor<4xf32>, tensor<i32>, tensor<2xi32>) -> ()
      }, {
        "stablehlo.return"(%8, %9, %10, %11) : (tensor<i32>, tensor<4xf32>, tensor<i32>, tensor<2xi32>) -> ()
      }) : (tensor<i1>) -> (tensor<i32>, tensor<4xf32>, tensor<i32>, tensor<2xi32>)
      "stablehlo.return"(%47#0, %47#1, %47#2, %47#3, %14) : (tensor<i32>, tensor<4xf32>, tensor<i32>, tensor<2xi32>, tensor<i1>) -> ()
    }) : (tensor<i32>, tensor<4xf32>, tensor<i32>, tensor<2xi32>, tensor<i1>) -> (tensor<i32>, tensor<4xf32>, tensor<i32>, tensor<2xi32>, tensor<i1>)
    %49 = "stablehlo.constant"() {value = dense<[0, 0, 4, 4]> : tensor<4xi32>} : () -> tensor<4xi32>
    %50 = "stablehlo.dynamic_slice"(%49, %arg2) {slice_sizes = array<i64: 1>} : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
    %51 = "stablehlo.reshape"(%50) : (tensor<1xi32>) -> tensor<i32>
    %52 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<4xi32>
    %53 = "stablehlo.broadcast_in_dim"(%51) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<4xi32>
    %54 = "stablehlo.add"(%52, %53) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %55 = "stablehlo.convert"(%54) : (tensor<4xi32>) -> tensor<4xf32>
    %56 = "stablehlo.multiply"(%48#1, %55) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%56, %48#3) : (tensor<4xf32>, tensor<2xi32>) -> ()
  }
}
