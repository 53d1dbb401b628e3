#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <sstream>

#include <weft/ops/elementwise.hpp>
#include <weft/tensor/print.hpp>

#include "tests/support/simulate_runtime.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::host_elements_test {
namespace {

using testing::expect_error;
using testing::expect_refusal;

class HostElements : public testing::TensorTest {};

/// Expects that elements are the same after they are sent to the device, read, and used in an op.
template <typename T>
void expect_kept(const std::vector<T>& elements) {
  const Shape shape{static_cast<std::int64_t>(elements.size())};
  const Tensor x = to_device(elements, shape);
  EXPECT_EQ(x.type(), (TensorType{*dtype_of<T>(), shape}));
  EXPECT_EQ(flip(flip(x, {0}), {0}).to_vector<T>(), elements);
}

TEST_F(HostElements, OfEachDtypeGoToTheChipsAndBack) {
  expect_kept<float>({0.1F, -1e30F});
  expect_kept<double>({0.1, -1e300});
  expect_kept<std::int32_t>({1, std::numeric_limits<std::int32_t>::min()});
  expect_kept<std::uint32_t>({1, std::numeric_limits<std::uint32_t>::max()});
  expect_kept<std::int64_t>({1, std::numeric_limits<std::int32_t>::min()});
  const std::array<bool, 3> preds{true, false, true};
  const Tensor pred = to_device(preds, {3});
  EXPECT_EQ(logical_not(pred).to_vector<bool>(), (std::vector<bool>{false, true, false}));
  const Tensor bf16 = to_device(std::vector<Bf16>{Bf16(1.5F), Bf16(-3)}, {2});
  EXPECT_EQ((bf16 * 2).to_vector(), (std::vector<float>{3, -6}));
  expect_kept<std::int8_t>({-128, 127});
  expect_kept<std::uint8_t>({0, 255});
  const Tensor f16 = to_device(std::vector<F16>{F16(1.5F), F16(-3)}, {2});
  EXPECT_EQ(f16.type(), (TensorType{DType::f16, {2}}));
  EXPECT_EQ((f16 * 2).to_vector(), (std::vector<float>{3, -6}));
}

TEST_F(HostElements, AreReadAsATypeThatHasAllValues) {
  const Tensor x = to_device(std::vector<std::int32_t>{1, -2}, {2});
  EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{1, -2}));
  EXPECT_EQ(x.to_vector<std::int64_t>(), (std::vector<std::int64_t>{1, -2}));
  EXPECT_EQ(equal(x, 1).to_vector(), (std::vector<float>{1, 0}));
  std::array<double, 2> place{};
  x.copy_to(place);
  EXPECT_EQ(place, (std::array<double, 2>{1, -2}));
  expect_refusal({"i32[2] is read as f32", "read it as i32, or cast it"},
                 [&](int& line) { line = __LINE__, (void)x.to_vector(); });
  std::array<std::int32_t, 3> larger{};
  expect_refusal({"i32[2] has 2 elements and is read into 3"},
                 [&](int& line) { line = __LINE__, x.copy_to(larger); });
}

TEST_F(HostElements, OfFewBitsAreReadAsWiderOnes) {
  const Tensor u8 = to_device(std::vector<std::uint8_t>{0, 255}, {2});
  EXPECT_EQ(u8.to_vector(), (std::vector<float>{0, 255}));
  EXPECT_EQ(u8.to_vector<std::int32_t>(), (std::vector<std::int32_t>{0, 255}));
  EXPECT_EQ(u8.to_vector<std::uint32_t>(), (std::vector<std::uint32_t>{0, 255}));
  EXPECT_EQ(u8.to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, 255}));
  EXPECT_EQ(static_cast<float>(u8.to_vector<F16>()[1]), 255);
  expect_refusal({"u8[2] is read as i8"},
                 [&](int& line) { line = __LINE__, (void)u8.to_vector<std::int8_t>(); });
  const Tensor i8 = to_device(std::vector<std::int8_t>{-128, 127}, {2});
  EXPECT_EQ(i8.to_vector(), (std::vector<float>{-128, 127}));
  expect_refusal({"i8[2] is read as u32"},
                 [&](int& line) { line = __LINE__, (void)i8.to_vector<std::uint32_t>(); });
  const Tensor f16 = to_device(std::vector<F16>{F16(65504)}, {1});
  EXPECT_EQ(f16.item(), 65504);
  EXPECT_EQ(f16.item<double>(), 65504);
  expect_refusal({"f16[1] is read as bf16"},
                 [&](int& line) { line = __LINE__, (void)f16.to_vector<Bf16>(); });
}

template <typename T>
Tensor tensor_of(T element) {
  return to_device(element, {});
}

TEST_F(HostElements, OneIsReadAsItsType) {
  const std::int64_t large = (std::int64_t{1} << 53) + 1;
  for (const std::int64_t number : {large, -large, std::numeric_limits<std::int64_t>::max(),
                                    std::numeric_limits<std::int64_t>::min()}) {
    EXPECT_EQ(tensor_of(number).item<std::int64_t>(), number);
  }
  const Tensor x = to_device(std::vector<std::int64_t>{large}, {1});
  expect_refusal({"item: ", "i64[1] is 9007199254740993, which a double can't represent",
                  "item<std::int64_t>"},
                 [&](int& line) { line = __LINE__, (void)x.item(); });
  expect_refusal({"i64[1] is read as f64"},
                 [&](int& line) { line = __LINE__, (void)x.item<double>(); });
  const Tensor most = tensor_of(std::numeric_limits<std::int64_t>::max());
  expect_refusal({"is 9223372036854775807, which a double can't represent"},
                 [&](int& line) { line = __LINE__, (void)most.item(); });
  EXPECT_EQ(tensor_of(std::int64_t{1} << 60).item(), 0x1p60);
  EXPECT_EQ(tensor_of(true).item<bool>(), true);
  EXPECT_EQ(tensor_of(2.5F).item<float>(), 2.5F);
  const Tensor two = to_device(std::vector<std::int32_t>{1, 2}, {2});
  expect_refusal({"i32[2] has 2 elements and is read into 1"},
                 [&](int& line) { line = __LINE__, (void)two.item<std::int32_t>(); });
}

TEST_F(HostElements, ThatDoNotFitAreRefused) {
  expect_refusal({"to_device: 2 elements are given for f64[3]"}, [&](int& line) {
    line = __LINE__, to_device(std::vector<double>{1, 2}, {3});
  });
  const std::array<std::byte, 2> bytes{std::byte{1}, std::byte{2}};
  const ConstElementSpan preds(DType::pred, bytes.data(), 2);
  expect_refusal({"to_device: element 1 of the pred is 2"},
                 [&](int& line) { line = __LINE__, to_device(preds, {2}); });
}

// The expected texts are those that torch prints, except for dtype and shape.

std::string text_of(const std::vector<float>& elements, const Shape& shape) {
  return to_string(to_device(elements, shape));
}

TEST_F(HostElements, ArePrintedAsTorchPrintsThem) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(text_of({1, 2, -3, 4}, {2, 2}), "tensor([[ 1.,  2.],\n        [-3.,  4.]], f32[2,2])");
  EXPECT_EQ(to_string(to_device(std::vector<std::uint8_t>{7, 255}, {2})),
            "tensor([  7, 255], u8[2])");
  EXPECT_EQ(to_string(to_device(std::vector<std::int8_t>{-128, 1}, {2})),
            "tensor([-128,    1], i8[2])");
  EXPECT_EQ(to_string(to_device(std::vector<F16>{F16(0.1F), F16(-2)}, {2})),
            "tensor([ 0.1000, -2.0000], f16[2])");
  EXPECT_EQ(text_of({0.5, -1.25, 3}, {3}), "tensor([ 0.5000, -1.2500,  3.0000], f32[3])");
  EXPECT_EQ(text_of({0.5, -1250, nan, infinity}, {4}),
            "tensor([ 5.0000e-01, -1.2500e+03,         nan,         inf], f32[4])");
  EXPECT_EQ(text_of({1e-6F, 2}, {2}), "tensor([1.0000e-06, 2.0000e+00], f32[2])");
  EXPECT_EQ(to_string(full({}, 3.5)), "tensor(3.5000, f32[])");
  EXPECT_EQ(to_string(to_device(std::vector<std::int64_t>{(1LL << 53) + 1}, {1})),
            "tensor([9007199254740993], i64[1])");
  EXPECT_EQ(to_string(full({3, 0}, 1)), "tensor([], f32[3,0])");
  EXPECT_EQ(to_string(equal(full({2}, 3.5), 3.5)), "tensor([true, true], pred[2])");
  EXPECT_EQ(to_string(reshape(iota({12}, 0), {2, 2, 3})),
            "tensor([[[ 0,  1,  2],\n         [ 3,  4,  5]],\n\n        [[ 6,  7,  8],\n         [ "
            "9, 10, 11]]], i32[2,2,3])");
}

TEST_F(HostElements, ArePrintedByTheirEndsWhereTheyAreMany) {
  const Tensor x = reshape(iota({2000}, 0), {20, 100});
  EXPECT_EQ(to_string(x),
            "tensor([[   0,    1,    2,  ...,   97,   98,   99],\n"
            "        [ 100,  101,  102,  ...,  197,  198,  199],\n"
            "        [ 200,  201,  202,  ...,  297,  298,  299],\n"
            "        ...,\n"
            "        [1700, 1701, 1702,  ..., 1797, 1798, 1799],\n"
            "        [1800, 1801, 1802,  ..., 1897, 1898, 1899],\n"
            "        [1900, 1901, 1902,  ..., 1997, 1998, 1999]], i32[20,100])");
  EXPECT_EQ(to_string(full({30}, 1.5), {.precision = 1, .line_width = 20}).substr(0, 32),
            "tensor([1.5, 1.5,\n        1.5, 1");
  EXPECT_EQ(to_string(full({2}, 1.5), {.line_width = 5}),
            "tensor([1.5000,\n        1.5000], f32[2])");
  expect_refusal({"to_string: precision = -1"},
                 [&](int& line) { line = __LINE__, (void)to_string(x, {.precision = -1}); });
}

TEST_F(HostElements, ArePrintedToAStreamAsASyncThatIsCounted) {
  std::ostringstream out;
  const int line = __LINE__ + 1;
  out << "x = " << full({2}, 1) + 1 << '\n';
  EXPECT_EQ(out.str(), "x = tensor([2., 2.], f32[2])\n");
  EXPECT_NE(runtime_.metrics().report().find(fmt::format("host_elements_test.cpp:{}", line)),
            std::string::npos);
}

TEST(HostElementsOnChips, ArePrintedWithTheirSharding) {
  const Mesh mesh({2, 2}, {"data", "model"});
  testing::SimulateRuntime runtime(mesh);
  const RuntimeScope scope(runtime);
  const Tensor x = to_device(std::vector<float>{1, 2, 3, 4}, {2, 2});
  mark_sharding(x, mesh, {"data", {}});
  EXPECT_EQ(to_string(x),
            "tensor([[1., 2.],\n        [3., 4.]], f32[2,2], sharding=[{\"data\"}, {}])");
}

}  // namespace
}  // namespace weft::host_elements_test
