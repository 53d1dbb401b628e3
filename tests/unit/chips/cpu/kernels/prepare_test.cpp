#include <array>

#include <gtest/gtest.h>

#include "spmd/ops/builder.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/unit/chips/cpu/kernels/kernel_case.hpp"

namespace weft::kernels::prepare_test {
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

TEST(Prepare, NamesACustomCallThatIsNotRegistered) {
  Program program;
  const TensorType type{DType::f32, {3}};
  const ValueId x = program.add_input(type, InputKind::data, "x", {});
  Builder builder(program);
  builder.set_loc("train.cpp:41");
  builder.custom_call({"nobody", "s -> s"}, std::array{x}, type);
  const Mesh mesh({1}, {"data"});
  weft::testing::expect_error(
      Errc::not_found,
      {"custom_call 'nobody' at train.cpp:41: this process has no op of that name with the "
       "sharding_rule \"s -> s\""},
      [&] {
        prepare(program, 0, {mesh, 0, make_matmul_stream()});
      });
}

}  // namespace
}  // namespace weft::kernels::prepare_test
