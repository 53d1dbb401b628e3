/// Tests that plans with long loops load in time proportional to the loops' length. If the time
/// were quadratic, these tests would take hours.

#include <gtest/gtest.h>

#include <cmath>
#include <deque>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/ops/builder.hpp"
#include "tests/support/engine_mesh.hpp"

namespace weft::long_chain_test {
namespace {

using testing::EngineMesh;
using testing::join;

constexpr int kOps = 20'000;
const Shape kShape{37};

Program program_with_input(DType dtype, const std::function<ValueId(Builder&, ValueId)>& chain) {
  Program program;
  Builder b(program);
  const ValueId x = program.add_input({dtype, kShape}, InputKind::data, "x", Sharding::closed());
  program.add_output(chain(b, x), "y", Sharding::closed());
  return program;
}

void expect_exact(const Program& program) {
  const Mesh mesh({1}, {"data"});
  Elements x;
  for (std::int64_t i = 0; i < kShape[0]; ++i) x.push_back(static_cast<double>(i - 18));
  const std::vector<Elements> inputs{x};
  EngineMesh chips(mesh);
  const Plan plan = compile(program, mesh, kCpuTarget);
  const auto outputs = chips.run(plan, inputs, EngineMesh::Schedule::one_thread);
  EXPECT_EQ(join(plan, mesh, outputs), interpret(program, inputs));
}

/// Adds kOps ops. Each reads the previous one's result.
ValueId add_and_subtract(Builder& b, ValueId x) {
  ValueId y = x;
  for (int i = 0; i < kOps; ++i) {
    y = b.binary(i % 2 == 0 ? OpKind::add : OpKind::subtract, y, x);
  }
  return y;
}

TEST(LongChain, OfOneValue) { expect_exact(program_with_input(DType::f32, add_and_subtract)); }

TEST(LongChain, OfOtherConstants) {
  expect_exact(program_with_input(DType::f32, [](Builder& b, ValueId x) {
    ValueId y = x;
    for (int i = 0; i < kOps / 2; ++i) {
      y = b.binary(i % 2 == 0 ? OpKind::add : OpKind::subtract, y,
                   b.constant(i, {DType::f32, kShape}));
    }
    return y;
  }));
}

/// More values are alive at once than there are registers: each is read long after it is computed.
TEST(LongChain, OfManyValuesAtOnce) {
  expect_exact(program_with_input(DType::f32, [](Builder& b, ValueId x) {
    std::deque<ValueId> made(100, x);
    for (int i = 0; i < kOps; ++i) {
      made.push_back(b.binary(OpKind::maximum, b.unary(OpKind::negate, made.back()), made.front()));
      made.pop_front();
    }
    return made.back();
  }));
}

/// So many values are alive at once that no stack has room for them.
TEST(LongChain, OfMoreValuesThanAStackHolds) {
  expect_exact(program_with_input(DType::f32, [](Builder& b, ValueId x) {
    std::vector<ValueId> made{x};
    for (int i = 0; i < 3000; ++i) {
      made.push_back(b.binary(i % 2 == 0 ? OpKind::add : OpKind::subtract, made.back(), x));
    }
    ValueId sum = x;
    for (std::size_t i = made.size(); i-- > 0;) sum = b.binary(OpKind::minimum, sum, made[i]);
    return sum;
  }));
}

/// Every second op isn't compiled to machine code.
TEST(LongChain, OfOpsThatArentCompiled) {
  expect_exact(program_with_input(DType::f32, [](Builder& b, ValueId x) {
    ValueId y = x;
    for (int i = 0; i < kOps / 4; ++i) {
      const ValueId narrow = b.convert(b.binary(OpKind::maximum, y, x), DType::f16);
      y = b.unary(OpKind::negate, b.convert(narrow, DType::f32));
    }
    return y;
  }));
}

TEST(LongChain, OfADtypeThatIsntCompiled) {
  expect_exact(program_with_input(DType::f64, add_and_subtract));
}

/// A sum after each op ends the op's loop, so each loop has one op.
TEST(LongChain, OfManyLoops) {
  expect_exact(program_with_input(DType::f32, [](Builder& b, ValueId x) {
    ValueId y = x;
    for (int i = 0; i < kOps / 4; ++i) {
      const ValueId top = b.reduce(ReduceKind::max, b.unary(OpKind::negate, y), DimList{0});
      y = b.binary(OpKind::minimum, b.broadcast_in_dim(top, kShape, {}), x);
    }
    return y;
  }));
}

}  // namespace
}  // namespace weft::long_chain_test
