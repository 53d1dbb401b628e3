#include "chips/cpu/onednn/onednn_convolution.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <type_traits>

#include "chips/cpu/onednn/onednn.hpp"
#include "spmd/program/window.hpp"

namespace weft::kernels {
namespace {

using dnnl::memory;

/// oneDNN's names for the arguments of a primitive: two operands, then the result.
using Names = std::array<int, 3>;
using Descs = std::array<memory::desc, 3>;

memory::desc describe(const OneDnnConvolution::Tensor& tensor, DType dtype) {
  return {tensor.sizes, data_type_of(dtype), tensor.strides};
}

memory::desc any_layout(const OneDnnConvolution::Tensor& tensor, DType dtype) {
  return {tensor.sizes, data_type_of(dtype), memory::format_tag::any};
}

bool is_row_major(const OneDnnConvolution::Tensor& tensor) {
  return std::ranges::is_sorted(tensor.strides, std::greater<>());
}

/// Returns the description of the tensor as a row-major array in the order of its dims.
memory::desc row_major(const OneDnnConvolution::Tensor& tensor, DType dtype) {
  memory::dims strides(tensor.sizes.size());
  std::int64_t stride = 1;
  for (std::size_t dim = strides.size(); dim-- > 0; stride *= tensor.sizes[dim]) {
    strides[dim] = stride;
  }
  return {tensor.sizes, data_type_of(dtype), strides};
}

/// Returns the strides of the tensor [N, C, spatial..] stored as an array [N, spatial.., C].
memory::dims channels_last_strides(const OneDnnConvolution::Tensor& tensor) {
  memory::dims strides(tensor.sizes.size());
  strides[1] = 1;
  std::int64_t stride = tensor.sizes[1];
  for (std::size_t dim = strides.size(); dim-- > 0;) {
    if (dim == 1) continue;
    strides[dim] = stride;
    stride *= tensor.sizes[dim];
  }
  return strides;
}

memory::desc channels_last(const OneDnnConvolution::Tensor& tensor, DType dtype) {
  return {tensor.sizes, data_type_of(dtype), channels_last_strides(tensor)};
}

/// Returns whether the tensor has channels_last_strides(). A dim of size 1 may have any stride.
bool is_channels_last(const OneDnnConvolution::Tensor& tensor) {
  const memory::dims strides = channels_last_strides(tensor);
  for (std::size_t dim = 0; dim < tensor.sizes.size(); ++dim) {
    if (tensor.sizes[dim] > 1 && tensor.strides[dim] != strides[dim]) return false;
  }
  return true;
}

bool has_avx512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bw");
#else
  return false;
#endif
}

/// Returns whether the convolution must not be computed with channels last, because of oneDNN's
/// errors with 1x1 kernels in this layout. With strides, oneDNN packs the pixels that it needs into
/// a buffer. It writes beyond this buffer on processors without AVX-512 if the number of features
/// isn't a multiple of eight (uxlfoundation/oneDNN#6035), and always in gradients of bf16, where it
/// also reads pairs of features beyond the last feature. oneDNN's own blocked layout has none of
/// these errors.
bool spoils_channels_last(const OneDnnConvolution& c) {
  using Spatial = OneDnnConvolution::Spatial;
  if (!std::ranges::all_of(c.spatial, [](const Spatial& dim) { return dim.kernel == 1; })) {
    return false;
  }
  const bool skips =
      std::ranges::any_of(c.spatial, [](const Spatial& dim) { return dim.stride > 1; });
  constexpr std::int64_t kBlock = 8;
  if (skips && c.source.sizes[1] % kBlock != 0 && !has_avx512()) return true;
  if (c.dtype != DType::bf16 || c.method == ConvolutionMethod::forward) return false;
  return skips || c.source.sizes[1] % 2 != 0 || c.destination.sizes[1] % 2 != 0;
}

/// Returns whether, along this dim, each element of the kernel covers an element of the input in
/// some window.
bool kernel_meets_input(const OneDnnConvolution::Spatial& dim) {
  for (std::int64_t k = 0; k < dim.kernel; ++k) {
    const std::int64_t in_first_window = k * dim.dilation - dim.low;
    const std::int64_t padded = std::max<std::int64_t>(-in_first_window, 0);
    // The first window after `low`.
    const std::int64_t window = (padded + dim.stride - 1) / dim.stride;
    if (window >= dim.output || in_first_window + window * dim.stride >= dim.input) return false;
  }
  return true;
}

/// Returns whether the windows are like those of usual layers: the padding is at most half of the
/// kernel, each element of the kernel covers the input in some window, and the stride is 1 if there
/// is only one window.
bool is_ordinary(const OneDnnConvolution::Spatial& dim) {
  return std::max(dim.low, dim.high()) <= dilated(dim.kernel, dim.dilation) / 2 &&
         (dim.output > 1 || dim.stride == 1) && kernel_meets_input(dim);
}

/// Returns whether the convolution must be computed in plain row-major layouts, because oneDNN
/// gives wrong results in other layouts, even in f32. With three spatial dims and unusual windows,
/// it omits elements of the gradient of the weights. If a dim has a stride but only one window,
/// oneDNN 3.7.2 reads from a wrong address.
bool needs_row_major(const OneDnnConvolution& c) {
  const auto has_needless_stride = [](const OneDnnConvolution::Spatial& dim) {
    return dim.output == 1 && dim.stride > 1;
  };
  return std::ranges::any_of(c.spatial, has_needless_stride) ||
         (c.method == ConvolutionMethod::backward_weights && c.spatial.size() == 3 &&
          !std::ranges::all_of(c.spatial, is_ordinary));
}

/// The memory layouts in which the primitive takes its tensors.
enum class Layout : std::uint8_t {
  as_given,
  row_major,
  channels_last,  ///< oneDNN chooses the layout of the weights
  chosen,         ///< oneDNN chooses all layouts: blocks of features
};
/// Chooses the layout. With two input features or fewer, oneDNN's blocks of eight features would be
/// mostly empty, and reordering row-major tensors would take more time than it saves. Measured on
/// AVX2 for 3x3 kernels, batch 64: 1 -> 32 features of 28x28 take 0.7 ms in place and 1.6 ms in
/// blocks; backward data of 32 -> 64 features of 14x14 takes 11.4 ms in place and 7.4 ms in blocks.
Layout layout_of(const OneDnnConvolution& c) {
  if (needs_row_major(c)) return Layout::row_major;
  const bool grouped = c.weights.sizes.size() > c.source.sizes.size();
  if (grouped) return Layout::chosen;
  const auto is_moved = [](const OneDnnConvolution::Tensor& tensor) {
    return is_channels_last(tensor) && !is_row_major(tensor);
  };
  if (is_moved(c.source) || is_moved(c.destination)) {
    return spoils_channels_last(c) ? Layout::chosen : Layout::channels_last;
  }
  const bool in_place = c.source.sizes[1] <= 2 && is_row_major(c.source) &&
                        is_row_major(c.weights) && is_row_major(c.destination);
  return in_place ? Layout::as_given : Layout::chosen;
}

struct Chosen {
  dnnl::primitive primitive;
  Names names;
  Descs user;  ///< layouts in the op's buffers
  Descs own;   ///< layouts that the primitive requires
  memory::desc scratchpad;
};

Chosen choose(const OneDnnConvolution& c, const dnnl::engine& engine) {
  const Layout layout = layout_of(c);
  const auto given = [&](const OneDnnConvolution::Tensor& tensor) {
    return layout == Layout::channels_last && is_channels_last(tensor)
               ? channels_last(tensor, c.dtype)
               : describe(tensor, c.dtype);
  };
  const auto wanted_of = [&](const OneDnnConvolution::Tensor& tensor) {
    return layout == Layout::as_given        ? describe(tensor, c.dtype)
           : layout == Layout::row_major     ? row_major(tensor, c.dtype)
           : layout == Layout::channels_last ? channels_last(tensor, c.dtype)
                                             : any_layout(tensor, c.dtype);
  };
  const memory::desc source = given(c.source);
  const memory::desc weights = describe(c.weights, c.dtype);
  const memory::desc destination = given(c.destination);
  const memory::desc wanted_source = wanted_of(c.source);
  const memory::desc wanted_weights =
      layout == Layout::channels_last ? any_layout(c.weights, c.dtype) : wanted_of(c.weights);
  const memory::desc wanted_destination = wanted_of(c.destination);
  memory::dims strides;
  memory::dims dilations;
  memory::dims low;
  memory::dims high;
  for (const OneDnnConvolution::Spatial& dim : c.spatial) {
    strides.push_back(dim.stride);
    dilations.push_back(dim.dilation - 1);
    low.push_back(dim.low);
    high.push_back(dim.high());
  }
  constexpr auto kDirect = dnnl::algorithm::convolution_direct;
  const auto forward = choose_primitive<dnnl::convolution_forward>(
      engine, dnnl::prop_kind::forward, kDirect, wanted_source, wanted_weights, wanted_destination,
      strides, dilations, low, high);
  const auto gradient = [&]<typename Primitive>(std::type_identity<Primitive>) {
    return choose_gradient<Primitive>(engine, forward, kDirect, wanted_source, wanted_weights,
                                      wanted_destination, strides, dilations, low, high);
  };
  switch (c.method) {
    case ConvolutionMethod::forward:
      return {dnnl::convolution_forward(forward),
              {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
              {source, weights, destination},
              {forward.src_desc(), forward.weights_desc(), forward.dst_desc()},
              forward.scratchpad_desc()};
    case ConvolutionMethod::backward_data: {
      using Gradient = dnnl::convolution_backward_data;
      const auto desc = gradient(std::type_identity<Gradient>());
      return {Gradient(desc),
              {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC},
              {destination, weights, source},
              {desc.diff_dst_desc(), desc.weights_desc(), desc.diff_src_desc()},
              desc.scratchpad_desc()};
    }
    default: {
      using Gradient = dnnl::convolution_backward_weights;
      const auto desc = gradient(std::type_identity<Gradient>());
      return {Gradient(desc),
              {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS},
              {source, destination, weights},
              {desc.src_desc(), desc.diff_dst_desc(), desc.diff_weights_desc()},
              desc.scratchpad_desc()};
    }
  }
}

/// A primitive, and the reorders between the op's layouts and the primitive's layouts.
class Stages {
 public:
  Stages(const Chosen& chosen, const std::shared_ptr<MatmulStream>& stream)
      : call_(chosen.primitive,
              {{chosen.names[0], chosen.own[0]},
               {chosen.names[1], chosen.own[1]},
               {chosen.names[2], chosen.own[2]},
               {DNNL_ARG_SCRATCHPAD, chosen.scratchpad}},
              stream) {
    std::size_t scratchpad = chosen.scratchpad.get_size();
    for (std::size_t i = 0; i < moves_.size(); ++i) {
      if (chosen.own[i] == chosen.user[i]) continue;
      const bool is_result = i == 2;
      const memory::desc& from = is_result ? chosen.own[i] : chosen.user[i];
      const memory::desc& to = is_result ? chosen.user[i] : chosen.own[i];
      const dnnl::reorder::primitive_desc move(stream->engine, from, stream->engine, to,
                                               strict_attributes());
      moves_[i].emplace(dnnl::reorder(move),
                        std::initializer_list<OneDnnCall::Argument>{
                            {DNNL_ARG_FROM, from},
                            {DNNL_ARG_TO, to},
                            {DNNL_ARG_SCRATCHPAD, move.scratchpad_desc()}},
                        stream);
      places_[i] = take(chosen.own[i].get_size());
      scratchpad = std::max(scratchpad, move.scratchpad_desc().get_size());
    }
    scratchpad_ = take(scratchpad);
  }

  std::size_t scratch_bytes() const { return bytes_; }

  void run(const KernelArgs& args) {
    const std::byte* scratchpad = args.scratch + scratchpad_;
    std::array<const std::byte*, 3> at{args.operands[0], args.operands[1], args.result};
    for (std::size_t i = 0; i < moves_.size(); ++i) {
      if (!moves_[i]) continue;
      const std::byte* place = args.scratch + places_[i];
      if (i < 2) moves_[i]->run({at[i], place, scratchpad});
      at[i] = place;
    }
    call_.run({at[0], at[1], at[2], scratchpad});
    if (moves_[2]) moves_[2]->run({at[2], args.result, scratchpad});
  }

 private:
  std::size_t take(std::size_t bytes) {
    const std::size_t place = bytes_;
    bytes_ += (bytes + 63) / 64 * 64;
    return place;
  }

  OneDnnCall call_;
  std::array<std::optional<OneDnnCall>, 3> moves_;
  std::array<std::size_t, 3> places_{};  // offsets in the scratch memory
  std::size_t scratchpad_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

std::int64_t OneDnnConvolution::Spatial::high() const {
  return (output - 1) * stride + dilated(kernel, dilation) - low - input;
}

// These conditions come from sweeps of random shapes with oneDNN 2.6.3 and 3.7.2 on a processor
// with avx512_bf16 (decision 0056). In the following cases oneDNN reports no error, but gives wrong
// sums, leaves elements of the result unwritten, or writes beyond the end of its buffers:
// - three spatial dims, or dilation (gradient of weights);
// - more padding on a side than half of the kernel (forward in 2.6.3);
// - an element of the kernel that meets only padding (gradient of weights);
// - a dim with a stride that has only one window (gradient of weights; in 3.7.2 also forward).
bool trusts_bf16(const OneDnnConvolution& convolution) {
  return convolution.spatial.size() <= 2 &&
         std::ranges::all_of(convolution.spatial, [](const OneDnnConvolution::Spatial& dim) {
           return dim.dilation == 1 && is_ordinary(dim);
         });
}

Kernel prepare_convolution(const OneDnnConvolution& convolution,
                           const std::shared_ptr<MatmulStream>& stream) {
  try {
    const OneThread one_thread;
    auto stages = std::make_shared<Stages>(choose(convolution, stream->engine), stream);
    return {[stages](const KernelArgs& args) { stages->run(args); }, stages->scratch_bytes()};
  } catch (const dnnl::error& error) {
    fail(Errc::unavailable, "oneDNN has no convolution of [{}] with weights [{}]: {}",
         fmt::join(convolution.source.sizes, ","), fmt::join(convolution.weights.sizes, ","),
         error.what());
  }
}

}  // namespace weft::kernels
