#pragma once
/// Computes convolution and its two gradients in f32 and bf16 by oneDNN.

#include <array>
#include <memory>
#include <vector>

#include "chips/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// The oneDNN primitive that computes a convolution. A convolution that is a gradient of an
/// ordinary convolution is computed by a backward primitive. `loops` means that oneDNN has no
/// primitive for the convolution, so plain loops compute it.
enum class ConvolutionMethod { forward, backward_data, backward_weights, loops };

/// The three tensors of an ordinary convolution. `method` says which of them is computed from the
/// other two.
struct OneDnnConvolution {
  struct Tensor {
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;  ///< strides in elements
  };
  /// One spatial dim. All sizes are at least 1.
  struct Spatial {
    std::int64_t input = 1;
    std::int64_t kernel = 1;
    std::int64_t output = 1;
    std::int64_t stride = 1;
    std::int64_t dilation = 1;
    std::int64_t low = 0;  ///< padding before the input, at least 0

    /// Returns the padding after the input, computed from the sizes. It must be more than -stride.
    std::int64_t high() const;
  };

  ConvolutionMethod method = ConvolutionMethod::forward;
  Tensor source;       ///< [N, C, spatial..]
  Tensor weights;      ///< [O, C, spatial..], or [groups, O / groups, C / groups, spatial..]
  Tensor destination;  ///< [N, O, spatial..]
  std::vector<Spatial> spatial;
  DType dtype = DType::f32;  ///< f32, or bf16 if multiplied_dtype() and trusts_bf16() allow it
};

/// Returns whether oneDNN's bf16 kernels are known to be right for this convolution. If not, the
/// convolution must be computed in f32.
bool trusts_bf16(const OneDnnConvolution& convolution);

/// Makes the kernel. Its operands and result depend on the method. forward: (source, weights) ->
/// destination. backward_data: (destination, weights) -> source. backward_weights: (source,
/// destination) -> weights. The kernel runs only on the calling thread.
Kernel prepare_convolution(const OneDnnConvolution& convolution,
                           const std::shared_ptr<MatmulStream>& stream);

}  // namespace weft::kernels
