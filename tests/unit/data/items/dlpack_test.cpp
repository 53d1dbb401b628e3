#include <weft/tensor/dlpack.hpp>

#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "data/items/dlpack_abi.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/interpret_runtime.hpp"

namespace weft::dlpack_test {
namespace {

using dlpack::TypeCode;
using testing::expect_error;

/// A DLPack tensor that another library owns.
class Foreign {
 public:
  explicit Foreign(std::vector<std::int64_t> shape, std::vector<std::int64_t> strides = {})
      : shape_(std::move(shape)), strides_(std::move(strides)) {
    std::iota(data.begin(), data.end(), 0.0F);
    managed.manager_ctx = this;
    managed.deleter = [](dlpack::ManagedTensorVersioned* self) {
      ++static_cast<Foreign*>(self->manager_ctx)->deleted;
    };
    managed.tensor = {.data = data.data(),
                      .device = {dlpack::DeviceType::cpu, 0},
                      .ndim = static_cast<std::int32_t>(shape_.size()),
                      .dtype = {static_cast<std::uint8_t>(TypeCode::floating), 32, 1},
                      .shape = shape_.data(),
                      .strides = strides_.empty() ? nullptr : strides_.data()};
  }
  DLManagedTensorVersioned* give() { return reinterpret_cast<DLManagedTensorVersioned*>(&managed); }

  std::array<float, 32> data{};
  dlpack::ManagedTensorVersioned managed{};
  int deleted = 0;

 private:
  std::vector<std::int64_t> shape_;
  std::vector<std::int64_t> strides_;
};

std::vector<float> floats(const HostTensor& tensor) {
  const auto elements = tensor.get<float>();
  return {elements.begin(), elements.end()};
}

/// Expects that from_dlpack() refuses the tensor and calls its deleter.
void expect_refused(Foreign& foreign, std::string_view words, Errc code = Errc::invalid_argument) {
  expect_error(code, {"from_dlpack", words}, [&] { (void)from_dlpack(foreign.give()); });
  EXPECT_EQ(foreign.deleted, 1) << words;
}

TEST(FromDlpack, BorrowsWhatIsRowMajor) {
  Foreign foreign({2, 3});
  {
    const HostTensor tensor = from_dlpack(foreign.give());
    EXPECT_EQ(static_cast<const void*>(tensor.elements.data()), foreign.data.data());
    EXPECT_EQ(tensor.shape, (Shape{2, 3}));
    EXPECT_EQ(floats(tensor), (std::vector<float>{0, 1, 2, 3, 4, 5}));
    const HostTensor copy = tensor;
    EXPECT_EQ(foreign.deleted, 0);
  }
  EXPECT_EQ(foreign.deleted, 1);
  // For a dim of size 1, the stride may have any value.
  Foreign odd({2, 1, 3}, {3, 77, 1});
  EXPECT_EQ(static_cast<const void*>(from_dlpack(odd.give()).elements.data()), odd.data.data());
}

TEST(FromDlpack, CopiesOtherStrides) {
  Foreign transposed({3, 2}, {1, 3});
  const HostTensor tensor = from_dlpack(transposed.give());
  EXPECT_EQ(transposed.deleted, 1);
  transposed.data.fill(-1);
  EXPECT_EQ(floats(tensor), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  Foreign repeated({2, 2}, {0, 2});
  EXPECT_EQ(floats(from_dlpack(repeated.give())), (std::vector<float>{0, 2, 0, 2}));
  Foreign reversed({3}, {-1});
  reversed.managed.tensor.byte_offset = 4 * sizeof(float);
  EXPECT_EQ(floats(from_dlpack(reversed.give())), (std::vector<float>{4, 3, 2}));
}

TEST(FromDlpack, MindsByteOffsetAndAlignment) {
  Foreign foreign({2});
  foreign.managed.tensor.byte_offset = 3 * sizeof(float);
  const HostTensor tensor = from_dlpack(foreign.give());
  EXPECT_EQ(static_cast<const void*>(tensor.elements.data()), foreign.data.data() + 3);
  Foreign misaligned({2});
  const std::array<float, 2> values{1.5F, 2.5F};
  std::memcpy(reinterpret_cast<std::byte*>(misaligned.data.data()) + 1, values.data(), 8);
  misaligned.managed.tensor.byte_offset = 1;
  EXPECT_EQ(floats(from_dlpack(misaligned.give())), (std::vector<float>{1.5F, 2.5F}));
}

TEST(FromDlpack, TakesScalarsAndEmptyTensors) {
  Foreign scalar({});
  EXPECT_EQ(floats(from_dlpack(scalar.give())), (std::vector<float>{0}));
  Foreign empty({3, 0});
  empty.managed.tensor.data = nullptr;
  const HostTensor tensor = from_dlpack(empty.give());
  EXPECT_EQ(tensor.shape, (Shape{3, 0}));
  EXPECT_TRUE(tensor.get<float>().empty());
  EXPECT_EQ(empty.deleted, 1);
}

TEST(FromDlpack, KnowsTheDtypes) {
  const auto dtype_of = [](TypeCode code, std::uint8_t bits) {
    Foreign foreign({1});
    foreign.managed.tensor.dtype = {static_cast<std::uint8_t>(code), bits, 1};
    return from_dlpack(foreign.give()).elements.dtype();
  };
  EXPECT_EQ(dtype_of(TypeCode::boolean, 8), DType::pred);
  EXPECT_EQ(dtype_of(TypeCode::signed_integer, 32), DType::i32);
  EXPECT_EQ(dtype_of(TypeCode::unsigned_integer, 32), DType::u32);
  EXPECT_EQ(dtype_of(TypeCode::signed_integer, 64), DType::i64);
  EXPECT_EQ(dtype_of(TypeCode::bfloat, 16), DType::bf16);
  EXPECT_EQ(dtype_of(TypeCode::floating, 64), DType::f64);
  EXPECT_EQ(dtype_of(TypeCode::signed_integer, 8), DType::i8);
  EXPECT_EQ(dtype_of(TypeCode::unsigned_integer, 8), DType::u8);
  EXPECT_EQ(dtype_of(TypeCode::floating, 16), DType::f16);
  Foreign words({1});
  words.managed.tensor.dtype = {static_cast<std::uint8_t>(TypeCode::unsigned_integer), 16, 1};
  expect_refused(words, "elements are uint of 16 bits: expected bool, int8, uint8, int32");
  Foreign unknown({1});
  unknown.managed.tensor.dtype.code = 200;
  expect_refused(unknown, "elements are type 200 of 32 bits");
}

TEST(FromDlpack, WhatItCanNotHoldIsRefused) {
  Foreign vectors({1});
  vectors.managed.tensor.dtype.lanes = 4;
  expect_refused(vectors, "lanes = 4");
  Foreign cuda({1});
  cuda.managed.tensor.device.type = static_cast<dlpack::DeviceType>(2);
  expect_refused(cuda, "device_type = 2");
  Foreign null_data({1});
  null_data.managed.tensor.data = nullptr;
  expect_refused(null_data, "expected valid memory");
  Foreign many({1, 1, 1, 1, 1, 1, 1});
  expect_refused(many, "ndim = 7");
  Foreign none({1});
  none.managed.tensor.ndim = -1;
  expect_refused(none, "ndim = -1");
  Foreign shapeless({1});
  shapeless.managed.tensor.shape = nullptr;
  expect_refused(shapeless, "shape is null");
  Foreign negative({2, -1});
  expect_refused(negative, "-1");
  Foreign huge({std::int64_t{1} << 40, std::int64_t{1} << 40});
  expect_refused(huge, "");
  Foreign far({2, 2}, {INT64_MIN, 1});
  expect_refused(far, "strides[0] = -9223372036854775808");
  Foreign offset({1});
  offset.managed.tensor.byte_offset = ~std::uint64_t{0};
  expect_refused(offset, "byte_offset = 18446744073709551615");
  Foreign truth({4});
  truth.managed.tensor.dtype = {static_cast<std::uint8_t>(TypeCode::boolean), 8, 1};
  truth.data[0] = 1;
  expect_refused(truth, "is a bool of value 128", Errc::corrupt);
  expect_error(Errc::invalid_argument, {"null"},
               [] { (void)from_dlpack(static_cast<DLManagedTensorVersioned*>(nullptr)); });
}

TEST(FromDlpack, OfAnotherMajorVersionOnlyTheDeleterIsCalled) {
  Foreign foreign({1});
  foreign.managed.version = {2, 5};
  foreign.managed.tensor.shape = reinterpret_cast<std::int64_t*>(8);
  expect_refused(foreign, "version 2.5: expected 1.x", Errc::version);
}

TEST(FromDlpack, MinorVersionsAreReadAndADeleterMayLack) {
  Foreign foreign({1});
  foreign.managed.version.minor = 9;
  foreign.managed.deleter = nullptr;
  EXPECT_EQ(floats(from_dlpack(foreign.give())), (std::vector<float>{0}));
}

TEST(FromDlpack, TakesTensorsFromBeforeVersionOne) {
  Foreign foreign({2, 2}, {1, 2});
  static int deleted = 0;
  deleted = 0;
  dlpack::ManagedTensor old{.tensor = foreign.managed.tensor,
                            .deleter = [](dlpack::ManagedTensor*) { ++deleted; }};
  EXPECT_EQ(floats(from_dlpack(reinterpret_cast<DLManagedTensor*>(&old))),
            (std::vector<float>{0, 2, 1, 3}));
  EXPECT_EQ(deleted, 1);
}

TEST(HostTensor, HasRowsForDatasets) {
  Foreign foreign({3, 2});
  const DatasetPtr dataset = tensors({from_dlpack(foreign.give()).rows("x")});
  EXPECT_EQ(dataset->size(), 3);
  EXPECT_EQ(dataset->fields(), (std::vector<Field>{{"x", {DType::f32, {2}}}}));
  EXPECT_EQ(read_item(*dataset, {.index = 2}).view().get<float>("x")[1], 5);
  EXPECT_EQ(foreign.deleted, 0);
  expect_error(Errc::invalid_argument, {"'s' is a scalar"},
               [] { (void)HostTensor(std::vector<float>{1}, {}).rows("s"); });
  expect_error(Errc::invalid_argument, {"2 elements are given for shape (3), which has 3"}, [] {
    (void)HostTensor(std::vector<float>{1, 2}, {3});
  });
  expect_error(Errc::invalid_argument, {"the elements are f32, but were requested as i32"},
               [] { (void)HostTensor(std::vector<float>{1}, {1}).get<std::int32_t>(); });
}

TEST(ToDlpack, LendsTheMemoryUntilItIsDeletedOnAnyThread) {
  auto values = std::make_shared<const std::vector<float>>(std::vector<float>{1, 2, 3, 4, 5, 6});
  const std::weak_ptr<const std::vector<float>> watched = values;
  auto* const lent = reinterpret_cast<dlpack::ManagedTensorVersioned*>(
      to_dlpack({ConstElementSpan(*values), {2, 3}, values}));
  EXPECT_EQ(lent->tensor.data, values->data());
  values.reset();
  EXPECT_EQ(lent->version.major, 1U);
  EXPECT_EQ(lent->flags, dlpack::kReadOnly);
  EXPECT_EQ(lent->tensor.device.type, dlpack::DeviceType::cpu);
  EXPECT_EQ(lent->tensor.dtype, (dlpack::DataType{2, 32, 1}));
  ASSERT_EQ(lent->tensor.ndim, 2);
  EXPECT_EQ(lent->tensor.shape[0], 2);
  EXPECT_EQ(lent->tensor.shape[1], 3);
  EXPECT_EQ(lent->tensor.strides[0], 3);
  EXPECT_EQ(lent->tensor.strides[1], 1);
  EXPECT_EQ(lent->tensor.byte_offset, 0U);
  EXPECT_FALSE(watched.expired());
  std::thread([&] { lent->deleter(lent); }).join();
  EXPECT_TRUE(watched.expired());
}

TEST(ToDlpack, ComesBackAsItWas) {
  const HostTensor back =
      from_dlpack(to_dlpack(HostTensor(std::vector<std::int64_t>{7, 8}, {2, 1})));
  EXPECT_EQ(back.shape, (Shape{2, 1}));
  EXPECT_EQ(back.get<std::int64_t>()[1], 8);
}

TEST(ToDlpack, SaysTheDtypes) {
  const auto said_of = [](HostTensor tensor) {
    auto* const lent =
        reinterpret_cast<dlpack::ManagedTensorVersioned*>(to_dlpack(std::move(tensor)));
    const dlpack::DataType said = lent->tensor.dtype;
    lent->deleter(lent);
    return said;
  };
  EXPECT_EQ(said_of(HostTensor(std::vector<F16>{F16(1)}, {1})), (dlpack::DataType{2, 16, 1}));
  EXPECT_EQ(said_of(HostTensor(std::vector<std::int8_t>{1}, {1})), (dlpack::DataType{0, 8, 1}));
  EXPECT_EQ(said_of(HostTensor(std::vector<std::uint8_t>{1}, {1})), (dlpack::DataType{1, 8, 1}));
}

TEST(ToHost, SharesWhatLiesOnTheHost) {
  testing::InterpretRuntime runtime;
  const RuntimeScope scope(runtime);
  DLManagedTensorVersioned* lent = nullptr;
  const void* address = nullptr;
  {
    const Tensor x = to_device(HostTensor(std::vector<std::int64_t>{7, 8}, {2}));
    const HostTensor first = to_host(x);
    address = first.elements.data();
    EXPECT_EQ(to_host(x).elements.data(), address);
    lent = to_dlpack(to_host(x));
  }
  const auto* const managed = reinterpret_cast<dlpack::ManagedTensorVersioned*>(lent);
  EXPECT_EQ(managed->tensor.data, address);
  const HostTensor back = from_dlpack(lent);  // `back` still has the elements when `lent` is gone
  EXPECT_EQ(back.elements.data(), address);
  EXPECT_EQ(back.get<std::int64_t>()[1], 8);
}

TEST(ToHost, OfAParameterIsItsPresentValue) {
  testing::InterpretRuntime runtime;
  const RuntimeScope scope(runtime);
  Parameter w = make_parameter("w", std::vector<float>{1, 2}, {2});
  EXPECT_EQ(floats(to_host(w)), (std::vector<float>{1, 2}));
  w.assign(w + 1);
  EXPECT_EQ(floats(to_host(w)), (std::vector<float>{2, 3}));
}

TEST(ToDevice, TakesATensorOfTheHostAndGivesItBack) {
  testing::InterpretRuntime runtime;
  const RuntimeScope scope(runtime);
  const Tensor x = to_device(HostTensor(std::vector<std::int64_t>{7, 8}, {2, 1}));
  EXPECT_EQ(x.type(), (TensorType{DType::i64, {2, 1}}));
  const HostTensor back = from_dlpack(to_dlpack(to_host(x + x)));
  EXPECT_EQ(back.shape, (Shape{2, 1}));
  EXPECT_EQ(back.get<std::int64_t>()[1], 16);
}

}  // namespace
}  // namespace weft::dlpack_test
