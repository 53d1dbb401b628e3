#pragma once
/// Convolution and its two gradients in f32 by oneDNN.

#include <array>
#include <memory>
#include <vector>

#include "actors/device/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// What of oneDNN a convolution is made of: gradients of ordinary convolutions are its backward
/// primitives. loops: plain ones, for what oneDNN has no form.
enum class ConvolutionMethod { forward, backward_data, backward_weights, loops };

/// The three tensors of an ordinary convolution, of which `method` says which one is computed from
/// the other two.
struct OneDnnConvolution {
  struct Tensor {
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;  ///< in elements
  };
  /// Sizes of 1 at least.
  struct Spatial {
    std::int64_t input = 1;
    std::int64_t kernel = 1;
    std::int64_t output = 1;
    std::int64_t stride = 1;
    std::int64_t dilation = 1;
    std::int64_t low = 0;  ///< padding before the input, 0 at least

    /// The padding behind it that the sizes ask for; more than -stride.
    std::int64_t high() const;
  };

  ConvolutionMethod method = ConvolutionMethod::forward;
  Tensor source;       ///< [N, C, spatial..]
  Tensor weights;      ///< [O, C, spatial..], or [groups, O / groups, C / groups, spatial..]
  Tensor destination;  ///< [N, O, spatial..]
  std::vector<Spatial> spatial;
};

/// operands and result as the method has them: (source, weights) -> destination, (destination,
/// weights) -> source, (source, destination) -> weights. Runs on the calling thread alone.
Kernel prepare_convolution(const OneDnnConvolution& convolution,
                           const std::shared_ptr<MatmulStream>& stream);

}  // namespace weft::kernels
