/// Loads tensors from files that other programs have written; tests/golden/safetensors/make.py
/// describes them.

#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <weft/weft.hpp>

#include "tests/support/checkpoint_world.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"

namespace weft::foreign_state_test {
namespace {

using testing::expect_error;
using testing::golden_path;
using testing::TemporaryFolder;

/// Returns the numbers -factor, 0, factor, 2 * factor, and so on.
template <typename T>
std::vector<T> rising(std::size_t count, double factor) {
  std::vector<T> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    numbers[i] = static_cast<T>((static_cast<double>(i) - 1) * factor);
  }
  return numbers;
}

template <typename T>
std::vector<T> elements_of(const Parameter& parameter) {
  const std::vector<std::byte> bytes = parameter.to_bytes();
  std::vector<T> elements(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(elements.data(), bytes.data(), bytes.size());
  return elements;
}

/// Converts numbers to bf16, which must represent them exactly: takes the upper halves of the
/// floats.
std::vector<std::uint16_t> to_bf16(const std::vector<float>& numbers) {
  std::vector<std::uint16_t> halves;
  for (const float number : numbers) {
    halves.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number) >> 16U));
  }
  return halves;
}

class ForeignState : public ::testing::Test {
 protected:
  void run(const std::function<void(TrainContext&)>& loop) const {
    const Result result =
        Trainer([&](TrainContext& ctx) { loop(ctx); },
                {.scaling = {.num_workers = 0},
                 .backend = {.spmd = {.mesh_shape = {2, 2}, .axis_names = {"data", "model"}}},
                 .run = {.name = "foreign", .storage_path = folder_.path()}})
            .fit();
    ASSERT_TRUE(result.ok()) << result.error->message;
  }
  TemporaryFolder folder_;
};

/// Returns parameters in the order of the file. Some have another dtype than the file, so their
/// elements are converted.
std::vector<Parameter> state_of_all_kinds() {
  const std::vector<std::pair<const char*, TensorType>> types{
      {"bool", {DType::pred, {5}}},  {"bf16", {DType::bf16, {2, 3}}},
      {"f16", {DType::f32, {3, 4}}}, {"f32", {DType::f32, {4, 2}}},
      {"f64", {DType::f64, {3}}},    {"i16", {DType::i32, {2}}},
      {"i32", {DType::i32, {}}},     {"i64", {DType::i64, {2}}},
      {"i8", {DType::i32, {3}}},     {"none", {DType::f32, {0, 4}}},
      {"u8", {DType::i32, {3}}},
  };
  std::vector<Parameter> state;
  for (const auto& [name, type] : types) {
    state.push_back(make_buffer(name, 0, type.shape, type.dtype));
  }
  return state;
}

TEST_F(ForeignState, OfAllKindsIsLoaded) {
  const std::string path = golden_path("safetensors/kinds.safetensors");
  run([&](TrainContext&) {
    const std::vector<Parameter> state = state_of_all_kinds();
    expect_error(
        Errc::invalid_argument,
        {"'f16' is f32[3,4], but in the file it is f16[3,4]", "'i8'", "'u8'", "LoadOptions::cast"},
        [&] { load(state, path); });
    const LoadResult result = load(state, path, {.cast = true});
    EXPECT_EQ(result.metadata,
              (std::map<std::string, std::string>{{"format", "pt"}, {"by", "make.py"}}));
    EXPECT_EQ(elements_of<std::uint8_t>(state[0]), (std::vector<std::uint8_t>{1, 0, 0, 1, 1}));
    EXPECT_EQ(elements_of<std::uint16_t>(state[1]), to_bf16(rising<float>(6, 0.75)));
    EXPECT_EQ(elements_of<float>(state[2]), rising<float>(12, 0.125));
    EXPECT_EQ(elements_of<float>(state[3]), rising<float>(8, 1.1));
    EXPECT_EQ(elements_of<double>(state[4]), rising<double>(3, 1e-3));
    EXPECT_EQ(elements_of<std::int32_t>(state[5]), (std::vector<std::int32_t>{-300, 300}));
    EXPECT_EQ(elements_of<std::int32_t>(state[6]), (std::vector<std::int32_t>{-70000}));
    EXPECT_EQ(elements_of<std::int64_t>(state[7]),
              (std::vector<std::int64_t>{-(std::int64_t{1} << 40), std::int64_t{1} << 40}));
    EXPECT_EQ(elements_of<std::int32_t>(state[8]), (std::vector<std::int32_t>{-128, 0, 127}));
    EXPECT_EQ(state[9].to_bytes().size(), 0U);
    EXPECT_EQ(elements_of<std::int32_t>(state[10]), (std::vector<std::int32_t>{0, 128, 255}));
  });
}

TEST_F(ForeignState, OfFewBitsIsLoadedAsItIs) {
  const std::string path = golden_path("safetensors/kinds.safetensors");
  run([&](TrainContext&) {
    const std::vector<Parameter> state{make_buffer("f16", 0, {3, 4}, DType::f16),
                                       make_buffer("i8", 0, {3}, DType::i8),
                                       make_buffer("u8", 0, {3}, DType::u8)};
    load(state, path, {.partial = true});
    EXPECT_EQ(state[0].to_vector(), rising<float>(12, 0.125));
    EXPECT_EQ(elements_of<std::int8_t>(state[1]), (std::vector<std::int8_t>{-128, 0, 127}));
    EXPECT_EQ(elements_of<std::uint8_t>(state[2]), (std::vector<std::uint8_t>{0, 128, 255}));
  });
}

/// Each chip reads its rows or columns, which begin at odd offsets in the file.
TEST_F(ForeignState, OfSeveralFilesIsLoadedToTheChips) {
  run([&](TrainContext& ctx) {
    Module net;
    Linear fc1(net, "fc1", {.in_features = 6, .out_features = 4});
    Linear fc2(net, "fc2", {.in_features = 4, .out_features = 2});
    mark_sharding(fc1.weight, *ctx.mesh(), {{"data"}, {"model"}});
    mark_sharding(fc2.weight, *ctx.mesh(), {{}, {"data", "model"}});
    load(net, golden_path("safetensors/split"), {.cast = true});
    // x is 0, so fc1 returns its bias, 0.25 * (i - 1).
    const Tensor y = fc2(fc1(full({3, 6}, 0)));
    sync();
    EXPECT_EQ(y.to_vector(), (std::vector<float>{0, 7, 0, 7, 0, 7}));
    EXPECT_EQ(elements_of<float>(fc1.weight), rising<float>(24, 0.5));
    EXPECT_EQ(elements_of<float>(fc1.bias), rising<float>(4, 0.25));
    EXPECT_EQ(elements_of<float>(fc2.weight), rising<float>(8, 2.0));
    EXPECT_EQ(elements_of<float>(fc2.bias), rising<float>(2, 3.0));
  });
}

}  // namespace
}  // namespace weft::foreign_state_test
