/// Compares convolutions, pools and resizing with torch (tests/golden/torch/windows.py).

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <weft/ops/convolution.hpp>
#include <weft/ops/interpolate.hpp>

#include "tests/support/torch_ops.hpp"

namespace weft::windows_torch_test {
namespace {

using testing::OpCase;
using testing::Operands;
using X = const Tensor&;

/// Returns the golden file of a case; convolutions have their own.
std::string golden_of(const OpCase& which) {
  return which.name.starts_with("conv") ? "torch/convolution_ops.safetensors"
                                        : "torch/window_ops.safetensors";
}

template <typename Options, typename Function>
OpCase of_weights(std::string name, Function function, Options options) {
  return {std::move(name), [=](Operands& of, X) {
            return function(Operand(of["x"]), of["kernel"], of["bias"], options);
          }};
}
OpCase of_x(std::string name, std::function<Tensor(X)> function) {
  return {std::move(name), [function](Operands& of, X) { return function(of["x"]); }};
}

template <int N, typename Function>
void add_conv(std::vector<OpCase>& all, Function function, const Spatial<N>& dilation) {
  const std::string name = fmt::format("conv{}d", N);
  using Options = ConvOptions<N>;
  all.push_back(of_weights(name, function, Options{}));
  all.push_back(of_weights(name + "_stride", function, Options{.stride = 2, .padding = 1}));
  all.push_back(of_weights(name + "_dilation", function, Options{.dilation = dilation}));
  all.push_back(of_weights(name + "_groups", function, Options{.groups = 2}));
  all.push_back(of_weights(name + "_same", function, Options{.same_padding = true}));
}

template <int N, typename Function>
void add_transpose(std::vector<OpCase>& all, Function function, const Spatial<N>& stride) {
  const std::string name = fmt::format("conv_transpose{}d", N);
  using Options = ConvTransposeOptions<N>;
  all.push_back(of_weights(name, function, Options{}));
  all.push_back(of_weights(name + "_stride", function,
                           Options{.stride = 2, .padding = 1, .output_padding = 1}));
  all.push_back(of_weights(name + "_dilation", function, Options{.stride = stride, .dilation = 2}));
  all.push_back(of_weights(name + "_groups", function, Options{.groups = 2}));
  all.push_back(of_weights(name + "_cut", function, Options{.padding = 2}));
}

void add_resizing(std::vector<OpCase>& all, std::size_t n) {
  const auto first = [n](std::vector<std::int64_t> sizes) {
    sizes.resize(n);
    return sizes;
  };
  const auto add = [&](const char* name, const InterpolateOptions& options) {
    all.push_back(of_x(fmt::format("interpolate{}d_{}", n, name),
                       [=](X x) { return interpolate(x, options); }));
  };
  const Interpolation linear = Interpolation::linear;
  add("nearest_twice", {.scale_factor = {2}});
  add("nearest", {.scale_factor = {1.7}});
  add("nearest_smaller", {.size = first({2, 3, 2})});
  add("linear", {.scale_factor = {2}, .mode = linear});
  add("linear_smaller", {.size = first({2, 3, 2}), .mode = linear});
  add("linear_corners", {.size = first({7, 5, 1}), .mode = linear, .align_corners = true});
}

void add_pools(std::vector<OpCase>& all) {
  all.insert(
      all.end(),
      {of_x("max_pool1d",
            [](X x) { return max_pool1d(x, {.kernel_size = 3, .stride = 2, .padding = 1}); }),
       of_x("max_pool3d",
            [](X x) {
              const DepthHeightWidth stride(1, 2, 2);
              return max_pool3d(x, {.kernel_size = 2, .stride = stride, .ceil_mode = true});
            }),
       of_x("avg_pool1d",
            [](X x) { return avg_pool1d(x, {.kernel_size = 4, .stride = 3, .padding = 2}); }),
       of_x("avg_pool3d",
            [](X x) {
              return avg_pool3d(x, {.kernel_size = 2,
                                    .stride = 2,
                                    .padding = 1,
                                    .count_include_pad = false,
                                    .ceil_mode = true});
            }),
       of_x("max_pool2d_of_one_image", [](X x) { return max_pool2d(x, {.kernel_size = 2}); }),
       of_x("adaptive_avg_pool1d", [](X x) { return adaptive_avg_pool1d(x, 4); }),
       of_x("adaptive_avg_pool2d",
            [](X x) {
              return adaptive_avg_pool2d(x, {3, 4});
            }),
       of_x("adaptive_avg_pool2d_whole", [](X x) { return adaptive_avg_pool2d(x, 1); }),
       of_x("adaptive_avg_pool2d_larger",
            [](X x) {
              return adaptive_avg_pool2d(x, {7, 8});
            }),
       of_x("adaptive_avg_pool3d", [](X x) {
         return adaptive_avg_pool3d(x, {1, 3, 2});
       })});
}

std::vector<OpCase> cases() {
  std::vector<OpCase> all;
  add_conv<1>(all, conv1d, 1);
  add_conv<2>(all, conv2d, {1, 2});
  add_conv<3>(all, conv3d, {1, 2, 1});
  add_transpose<1>(all, conv_transpose1d, 1);
  add_transpose<2>(all, conv_transpose2d, {1, 3});
  add_transpose<3>(all, conv_transpose3d, {1, 3, 2});
  all.push_back(
      {"conv2d_of_one_image", [](Operands& of, X) { return conv2d(of["x"], of["kernel"]); }});
  add_pools(all);
  for (std::size_t n = 1; n <= 3; ++n) add_resizing(all, n);
  return all;
}

class TorchWindowOp : public ::testing::TestWithParam<OpCase> {};

TEST_P(TorchWindowOp, GivesItsValueAndGradients) {
  testing::expect_op_as_torch(GetParam(), golden_of(GetParam()));
}

TEST_P(TorchWindowOp, GivesThemOnChips) {
  const Mesh mesh({2, 2}, {"data", "model"});
  testing::expect_op_as_torch(GetParam(), golden_of(GetParam()), &mesh);
}

INSTANTIATE_TEST_SUITE_P(All, TorchWindowOp, ::testing::ValuesIn(cases()),
                         [](const auto& which) { return which.param.name; });

TEST(TorchWindowOps, CoverTheGoldenFiles) {
  std::map<std::string, std::vector<OpCase>> by_file;
  for (const OpCase& which : cases()) by_file[golden_of(which)].push_back(which);
  for (const auto& [file, of_file] : by_file) testing::expect_all_in(file, of_file);
}

}  // namespace
}  // namespace weft::windows_torch_test
