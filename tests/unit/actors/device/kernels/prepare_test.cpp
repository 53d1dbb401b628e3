#include <array>

#include <gtest/gtest.h>

#include <weft/tests/unit/actors/device/kernels/kernel_case.hpp>

namespace weft::kernels {
namespace {

TEST(Prepare, NamesWhatHasNoKernel) {
  Program program;
  const TensorType type{DType::pred, {3}};
  const ValueId x = program.add_input(type, InputKind::data, "x", {});
  program.add_op(OpKind::exponential, std::array{x}, {}, type, program.intern_loc("train.cpp:41"));
  const Mesh mesh({1}, {"data"});
  try {
    prepare(program, 0, {mesh, 0, make_matmul_stream()});
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unavailable);
    const std::string text = error.what();
    EXPECT_NE(text.find("exponential of pred[3] at train.cpp:41"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace weft::kernels
