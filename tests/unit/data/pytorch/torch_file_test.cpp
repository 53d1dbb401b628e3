/// Reads files of torch.save(); tests/golden/pytorch/make.py describes them.

#include "data/pytorch/torch_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"

namespace weft::torch_file_test {
namespace {

using testing::expect_error;

std::vector<TorchTensor> read(const std::string& file) {
  return read_torch_file(file.size(), [&](std::uint64_t offset, std::span<std::byte> out) {
    ASSERT_LE(offset + out.size(), file.size());
    std::ranges::copy(std::as_bytes(std::span(file)).subspan(offset, out.size()), out.begin());
  });
}

std::string golden(const std::string& name) { return testing::read_golden("pytorch/" + name); }

std::vector<std::string> names_of(const std::vector<TorchTensor>& tensors) {
  std::vector<std::string> names;
  for (const TorchTensor& tensor : tensors) names.push_back(tensor.pickled.name);
  return names;
}

TEST(TorchFile, HasAllKinds) {
  const std::vector<TorchTensor> tensors = read(golden("kinds.pt"));
  EXPECT_EQ(
      names_of(tensors),
      (std::vector<std::string>{"f32", "f64", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "u16",
                                "u32", "bool", "none", "parameter", "complex", "f8", "nine_dims"}));
  const char* const dtypes[] = {"F32", "F64", "F16",  "BF16", "I64", "I32", "I16",     "I8", "U8",
                                "U16", "U32", "BOOL", "F32",  "F32", "C64", "F8_E4M3", "F32"};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(tensors[i].pickled.dtype, dtypes[i]) << tensors[i].pickled.name;
    EXPECT_TRUE(tensors[i].is_row_major()) << tensors[i].pickled.name;
  }
}

TEST(TorchFile, HasViewsOfOneStorage) {
  const std::vector<TorchTensor> tensors = read(golden("views.pt"));
  ASSERT_EQ(names_of(tensors), (std::vector<std::string>{"base", "row", "column", "transposed",
                                                         "strided", "expanded", "flags", "same"}));
  EXPECT_TRUE(tensors[0].is_row_major());
  EXPECT_TRUE(tensors[1].is_row_major());
  for (const std::size_t i : {2U, 3U, 4U, 5U, 6U}) EXPECT_FALSE(tensors[i].is_row_major()) << i;
  EXPECT_EQ(tensors[1].begin, tensors[0].begin + 24);
  EXPECT_EQ(tensors[7].begin, tensors[0].begin);
  EXPECT_EQ(tensors[3].pickled.strides, (std::vector<std::int64_t>{1, 6}));
}

TEST(TorchFile, HasModelAndOptimizerOfATraining) {
  const std::vector<std::string> names = names_of(read(golden("training.pt")));
  for (const char* name : {"model.fc1.weight", "model.fc2.bias", "optimizer.state.0.exp_avg",
                           "optimizer.state.3.step"}) {
    EXPECT_EQ(std::ranges::count(names, name), 1) << name;
  }
  EXPECT_EQ(names.size(), 4U + 4U * 3U);
}

TEST(TorchFile, MayBeOfAnotherProtocolOrOneTensor) {
  EXPECT_EQ(names_of(read(golden("protocol4.pt"))), (std::vector<std::string>{"a.b.0", "a.b.1"}));
  EXPECT_EQ(names_of(read(golden("one.pt"))), (std::vector<std::string>{"tensor"}));
}

TEST(TorchFile, OfAModuleIsRefusedByTheNameOfItsClass) {
  expect_error(Errc::version, {"Sequential", "torch.nn.modules.container", "state_dict"},
               [] { read(golden("module.pt")); });
}

TEST(TorchFile, OfTheOldFormatIsKnown) {
  const std::string old = golden("old.pt");
  EXPECT_TRUE(is_old_torch_file(std::as_bytes(std::span(old))));
  const std::string whole = golden("one.pt");
  EXPECT_FALSE(is_old_torch_file(std::as_bytes(std::span(whole))));
}

TEST(TorchFile, IsRefusedWhereItIsCutOffOrChanged) {
  const std::string file = golden("views.pt");
  for (std::size_t bytes = 0; bytes < file.size(); bytes += 7) {
    expect_error(Errc::corrupt, {}, [&] { read(file.substr(0, bytes)); });
  }
  int refused = 0;
  for (std::size_t bit = 0; bit < 8 * file.size(); bit += 3) {
    std::string changed = file;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    try {
      (void)read(changed);
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == Errc::corrupt || error.code() == Errc::version) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(TorchFile, IsNoOtherZip) {
  expect_error(Errc::corrupt, {"without data.pkl", "weft import"},
               [] { read(testing::read_golden("data/stored.npz")); });
}

}  // namespace
}  // namespace weft::torch_file_test
