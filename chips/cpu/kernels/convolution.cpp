#include "chips/cpu/kernels/convolution.hpp"

#include <algorithm>
#include <vector>

#include "chips/cpu/kernels/through_f32.hpp"
#include "chips/cpu/loops/arithmetic.hpp"
#include "chips/cpu/loops/element.hpp"
#include "chips/cpu/loops/prepares.hpp"
#include "chips/cpu/loops/strided.hpp"
#include "chips/cpu/loops/vectorize.hpp"
#include "chips/cpu/loops/window_loops.hpp"
#include "chips/cpu/onednn/matmul.hpp"
#include "chips/cpu/onednn/onednn_convolution.hpp"

namespace weft::kernels {
namespace {

/// A convolution, with the shapes of its three tensors: lhs, rhs, result.
struct Problem {
  Convolution attrs;
  std::array<Shape, 3> shapes;

  const std::vector<std::int64_t>& side(std::size_t tensor) const {
    return tensor == 0 ? attrs.lhs : tensor == 1 ? attrs.rhs : attrs.result;
  }
  std::int64_t size(std::size_t tensor, std::size_t role) const {
    return shapes[tensor][static_cast<int>(side(tensor)[role])];
  }
  std::int64_t stride(std::size_t tensor, std::size_t role) const {
    return dense_strides(shapes[tensor])[static_cast<std::size_t>(side(tensor)[role])];
  }
  std::int64_t group_size() const {
    return attrs.group.empty() ? 1 : shapes[0][static_cast<int>(attrs.group[0])];
  }
  std::int64_t group_stride(std::size_t tensor) const {
    if (attrs.group.empty()) return 0;
    return dense_strides(shapes[tensor])[static_cast<std::size_t>(attrs.group[tensor])];
  }
};

Problem problem_of(const Program& program, OpId op) {
  const auto operands = program.op_operands(op);
  const Shape& rhs = program.shape(operands[1]);
  return {convolution_of(program.op_attrs(op), rhs),
          {program.shape(operands[0]), rhs, program.shape(program.result(op))}};
}

/// The number (0: lhs, 1: rhs, 2: result) of each tensor of an ordinary convolution. For a
/// gradient, for example, the result may be the weights.
struct Roles {
  std::size_t source;
  std::size_t weights;
  std::size_t destination;
};
Roles roles_of(ConvolutionMethod method) {
  switch (method) {
    case ConvolutionMethod::backward_data: return {2, 1, 0};
    case ConvolutionMethod::backward_weights: return {0, 2, 1};
    default: return {0, 1, 2};
  }
}

std::vector<OneDnnConvolution::Spatial> spatial_of(const Problem& problem,
                                                   ConvolutionMethod method) {
  const Roles roles = roles_of(method);
  std::vector<OneDnnConvolution::Spatial> spatial;
  for (std::size_t i = 0; i < problem.attrs.window.size(); ++i) {
    const WindowDim& window = problem.attrs.window[i];
    OneDnnConvolution::Spatial dim{.input = problem.size(roles.source, 2 + i),
                                   .kernel = problem.size(roles.weights, 2 + i),
                                   .output = problem.size(roles.destination, 2 + i),
                                   .stride = window.stride,
                                   .dilation = window.dilation,
                                   .low = window.low};
    if (method == ConvolutionMethod::backward_data) {
      dim.stride = window.base_dilation;
      dim.low = dilated(window.size, window.dilation) - 1 - window.low;
    } else if (method == ConvolutionMethod::backward_weights) {
      std::swap(dim.stride, dim.dilation);
    }
    spatial.push_back(dim);
  }
  return spatial;
}

/// Returns whether oneDNN supports the padding that the method needs: at least 0 before the input,
/// and more than -stride after it.
bool has_form(const Problem& problem, ConvolutionMethod method) {
  return std::ranges::all_of(spatial_of(problem, method),
                             [](const OneDnnConvolution::Spatial& dim) {
                               return dim.low >= 0 && dim.high() > -dim.stride;
                             });
}

/// Returns whether the dims for group and feature are contiguous in memory, so that they can be the
/// single dim that oneDNN has for both.
bool groups_are_runs(const Problem& problem, ConvolutionMethod method) {
  if (problem.attrs.group.empty()) return true;
  const Roles roles = roles_of(method);
  const bool swapped = method == ConvolutionMethod::backward_weights;
  const auto is_run = [&](std::size_t tensor, std::size_t feature) {
    return problem.group_stride(tensor) ==
           problem.stride(tensor, feature) * problem.size(tensor, feature);
  };
  return is_run(roles.source, swapped ? 0 : 1) && is_run(roles.destination, 1);
}

ConvolutionMethod method_of(const Problem& problem) {
  const auto all = [&](auto is) { return std::ranges::all_of(problem.attrs.window, is); };
  const bool strides_by_one = all([](const WindowDim& w) { return w.stride == 1; });
  const bool is_dense = all([](const WindowDim& w) { return w.base_dilation == 1; });
  const bool is_point = all([](const WindowDim& w) { return w.size == 1; });
  std::int64_t window = 1;
  std::int64_t result = 1;
  for (std::size_t i = 2; i < problem.attrs.rhs.size(); ++i) {
    window *= problem.size(1, i);
    result *= problem.size(2, i);
  }
  const bool ordinary = is_dense && (is_point || !problem.attrs.reversed);
  const bool back = strides_by_one && (is_point || problem.attrs.reversed);
  // An ordinary convolution can also be computed as a gradient of weights, which is tried first if
  // the window is larger than the result.
  using enum ConvolutionMethod;
  const std::array order = window > result ? std::array{backward_weights, forward, backward_data}
                                           : std::array{forward, backward_weights, backward_data};
  for (const ConvolutionMethod method : order) {
    if ((method == backward_data ? back : ordinary) && has_form(problem, method) &&
        groups_are_runs(problem, method)) {
      return method;
    }
  }
  return loops;
}

/// Returns a tensor with its dims in oneDNN's order: the dims that have the roles `first` and
/// `second`, then the spatial dims.
OneDnnConvolution::Tensor tensor_of(const Problem& problem, std::size_t tensor, std::size_t first,
                                    std::size_t second) {
  OneDnnConvolution::Tensor result;
  for (std::size_t i = 0; i < problem.side(tensor).size(); ++i) {
    const std::size_t role = i == 0 ? first : i == 1 ? second : i;
    result.sizes.push_back(problem.size(tensor, role));
    result.strides.push_back(problem.stride(tensor, role));
  }
  return result;
}

OneDnnConvolution for_onednn(const Problem& problem, ConvolutionMethod method) {
  const Roles roles = roles_of(method);
  // The op sums over its input feature. In the gradient of weights, this dim is oneDNN's batch; in
  // the gradient of data, it is the output feature of oneDNN's weights.
  const bool of_weights = method == ConvolutionMethod::backward_weights;
  const bool of_data = method == ConvolutionMethod::backward_data;
  OneDnnConvolution c{
      .method = method,
      .source = tensor_of(problem, roles.source, of_weights ? 1 : 0, of_weights ? 0 : 1),
      .weights = tensor_of(problem, roles.weights, of_data ? 0 : 1, of_data ? 1 : 0),
      .destination = tensor_of(problem, roles.destination, 0, 1),
      .spatial = spatial_of(problem, method)};
  if (!problem.attrs.group.empty()) {
    const std::int64_t groups = problem.group_size();
    c.source.sizes[1] *= groups;
    c.destination.sizes[1] *= groups;
    c.weights.sizes.insert(c.weights.sizes.begin(), groups);
    c.weights.strides.insert(c.weights.strides.begin(), problem.group_stride(roles.weights));
  }
  return c;
}

/// A loop over a dim that isn't spatial. Its stride is 0 in tensors that don't have the dim.
struct Pairing {
  std::int64_t size;
  std::int64_t lhs, rhs, result;
};

/// Makes a kernel of plain loops. It is exact for integers, and its results in f64 serve as the
/// reference. The order of summation is fixed.
template <typename T>
Kernel by_loops(const Problem& problem) {
  const Pairing group{problem.group_size(), problem.group_stride(0), problem.group_stride(1),
                      problem.group_stride(2)};
  const Pairing batch{problem.size(0, 0), problem.stride(0, 0), 0, problem.stride(2, 0)};
  const Pairing output{problem.size(1, 1), 0, problem.stride(1, 1), problem.stride(2, 1)};
  const Pairing input{problem.size(0, 1), problem.stride(0, 1), problem.stride(1, 0), 0};
  const WindowLoops loops = window_loops(
      window_axes(problem.attrs, problem.shapes[0], problem.shapes[1], problem.shapes[2]));
  const std::int64_t count = problem.shapes[2].num_elements();
  return vectorized([=](const KernelArgs& args) {
    std::fill_n(as<T>(args.result), count, T{0});
    for (std::int64_t g = 0; g < group.size; ++g) {
      for (std::int64_t b = 0; b < batch.size; ++b) {
        for (std::int64_t o = 0; o < output.size; ++o) {
          for (std::int64_t i = 0; i < input.size; ++i) {
            const T* x = as<T>(args.operands[0]) + g * group.lhs + b * batch.lhs + i * input.lhs;
            const T* w = as<T>(args.operands[1]) + g * group.rhs + o * output.rhs + i * input.rhs;
            T* y = as<T>(args.result) + g * group.result + b * batch.result + o * output.result;
            for_each_run(loops, [&](const Meeting& first, std::int64_t turns) {
              const T weight = w[first.place];
              for (std::int64_t j = 0; j < turns; ++j) {
                T& sum = y[first.window + j * loops.window_step];
                sum = Add{}(sum, Multiply{}(weight, x[first.operand + j * loops.operand_step]));
              }
            });
          }
        }
      }
    }
  });
}

Kernel zeros(const TensorType& type) {
  return {[bytes = type.bytes()](const KernelArgs& args) {
    std::fill_n(args.result, bytes, std::byte{0});
  }};
}

}  // namespace

ConvolutionMethod convolution_method(const Program& program, OpId op) {
  const DType dtype = program.type(program.result(op)).dtype;
  if (dtype != DType::f32 && !is_half(dtype)) return ConvolutionMethod::loops;
  return method_of(problem_of(program, op));
}

Kernel convolution(const Program& program, OpId op, const ChipContext& chip) {
  const TensorType& type = program.type(program.result(op));
  const Problem problem = problem_of(program, op);
  if (type.num_elements() == 0 || problem.shapes[0].num_elements() == 0) return zeros(type);
  const ConvolutionMethod method = convolution_method(program, op);
  if (method == ConvolutionMethod::loops) {
    const DType dtype = is_half(type.dtype) ? DType::f32 : type.dtype;
    const Kernel kernel = visit_dtype(dtype, [&]<typename T>(std::type_identity<T>) -> Kernel {
      if constexpr (std::is_same_v<T, Compute<T>>) return by_loops<T>(problem);
      return {};
    });
    return dtype != type.dtype ? through_f32(program, op, kernel) : kernel;
  }
  OneDnnConvolution layer = for_onednn(problem, method);
  layer.dtype = multiplied_dtype(type.dtype);
  if (layer.dtype == DType::bf16 && !trusts_bf16(layer)) layer.dtype = DType::f32;
  const Kernel kernel = prepare_convolution(layer, chip.stream);
  return layer.dtype != type.dtype ? through_f32(program, op, kernel) : kernel;
}

constexpr Prepare prepares::convolution = prepare_by<kernels::convolution>;

}  // namespace weft::kernels
