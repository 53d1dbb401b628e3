// Tests that random elementwise programs give the same bits on every path that this processor has:
// kernels for each vector width, ops one by one in tiles, and ops compiled together.
// WEFT_TEST_SEED=<seed> runs one case again.

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <limits>
#include <span>

#include "chips/cpu/cpu_target.hpp"
#include "chips/cpu/executor.hpp"
#include "chips/cpu/jit/executable_memory.hpp"
#include "chips/cpu/loops/vectorize.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/program/element.hpp"
#include "spmd/text/text.hpp"
#include "tests/property/seeds.hpp"
#include "tests/support/engine_mesh.hpp"
#include "tests/support/kernel_paths.hpp"
#include "tests/support/random_program.hpp"

namespace weft::kernel_paths_test {
namespace {

using kernels::KernelPath;
using kernels::Vectors;
using testing::EngineMesh;
using testing::kernel_paths;
using testing::PathScope;
using testing::Random;

/// Makes programs of random elementwise ops on a few dtypes, which read values long after they are
/// computed.
class Chains {
 public:
  /// With `compiles`, uses only ops that can be compiled together.
  Chains(Random& random, const Shape& shape, int ops, bool compiles)
      : random_(random), shape_(shape), compiles_(compiles) {
    for (const DType dtype : dtypes()) {
      for (int dim = 0; dim < shape_.size(); ++dim) {
        const ValueId along = input({dtype, {shape_[dim]}});
        made_.push_back(build_.broadcast_in_dim(along, shape_, std::array<std::int64_t, 1>{dim}));
      }
      for (int i = 0; i < 2; ++i) made_.push_back(input({dtype, shape_}));
      made_.push_back(build_.broadcast_in_dim(input({dtype, {}}), shape_, {}));
      made_.push_back(build_.constant(static_cast<double>(random_.below(2)), {dtype, shape_}));
    }
    made_.push_back(build_.constant(8, {DType::u32, shape_}));
    for (int i = 0; i < ops; ++i) {
      made_.push_back(next());
      if (random_.one_in(5)) program.add_output(made_.back(), "y", Sharding::closed());
    }
    program.add_output(made_.back(), "y", Sharding::closed());
  }

  Program program;

 private:
  /// Returns the dtypes of inputs. If ops are to be compiled, f64 isn't among them.
  std::span<const DType> dtypes() const {
    static constexpr std::array kAll{DType::f32, DType::f32,  DType::bf16, DType::i32,
                                     DType::u32, DType::pred, DType::f64};
    return std::span(kAll).first(kAll.size() - (compiles_ ? 1 : 0));
  }

  ValueId input(const TensorType& type) {
    return program.add_input(type, InputKind::data, "x", Sharding::closed());
  }
  DType dtype(ValueId value) const { return program.type(value).dtype; }
  ValueId any() { return made_[random_.below(made_.size())]; }
  ValueId any(DType of) {
    for (;;) {
      if (const ValueId value = any(); dtype(value) == of) return value;
    }
  }
  OpKind one_of(std::initializer_list<OpKind> kinds) {
    return *(kinds.begin() + random_.below(kinds.size()));
  }

  ValueId next() {
    const ValueId x = any();
    const DType of = dtype(x);
    switch (random_.below(8)) {
      case 0: {
        const DType to = dtypes()[random_.below(dtypes().size())];
        if (compiles_ && is_floating(of) && to == DType::u32) break;
        return build_.convert(x, to);
      }
      case 1: return build_.select(any(DType::pred), x, any(of));
      case 2:
        if (compiles_ && of == DType::pred) break;
        return build_.compare(static_cast<CompareDirection>(random_.below(6)), x, any(of));
      default: break;
    }
    if (of == DType::pred) {
      if (random_.one_in(4)) return build_.unary(OpKind::logical_not, x);
      return build_.binary(one_of({OpKind::logical_and, OpKind::logical_or, OpKind::logical_xor}),
                           x, any(of));
    }
    if (is_floating(of) && random_.one_in(2)) return real(x);
    if (of == DType::i32 && random_.one_in(5) && !compiles_) {
      return build_.unary(one_of({OpKind::negate, OpKind::abs, OpKind::sign}), x);
    }
    if (!compiles_ && random_.one_in(9)) return build_.binary(OpKind::remainder, x, any(of));
    if ((is_floating(of) || !compiles_) && random_.one_in(5)) {
      return build_.binary(OpKind::divide, x, any(of));
    }
    return build_.binary(
        one_of({OpKind::add, OpKind::subtract, OpKind::multiply, OpKind::maximum, OpKind::minimum}),
        x, any(of));
  }

  ValueId real(ValueId x) {
    if (!compiles_ && random_.one_in(9)) return build_.unary(OpKind::sine, x);
    return build_.unary(
        one_of({OpKind::negate, OpKind::sign, OpKind::abs, OpKind::exponential, OpKind::log,
                OpKind::tanh, OpKind::logistic, OpKind::sqrt, OpKind::rsqrt, OpKind::softplus,
                OpKind::floor, OpKind::ceil, OpKind::round_nearest_even, OpKind::log_plus_one,
                OpKind::exponential_minus_one, OpKind::erf, OpKind::is_finite}),
        x);
  }

  Random& random_;
  Shape shape_;
  bool compiles_;
  Builder build_{program};
  std::vector<ValueId> made_;
};

/// Returns elements of all magnitudes, and infinities and NaNs.
double any_element(DType dtype, Random& random) {
  const auto sign = random.one_in(2) ? -1.0 : 1.0;
  if (dtype == DType::pred) return static_cast<double>(random.below(2));
  if (dtype == DType::u32) return static_cast<double>(random.below(std::uint64_t{1} << 32));
  if (dtype == DType::i32)
    return sign * static_cast<double>(random.below(1U << (random.below(31))));
  constexpr std::array kSpecial{0.0,
                                std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN(),
                                1e-42,
                                1.0,
                                0.5};
  if (random.one_in(8)) return sign * kSpecial[random.below(kSpecial.size())];
  const double fraction = 1 + static_cast<double>(random.below(1 << 24)) * 0x1p-24;
  const int most = random.one_in(4) ? 120 : 5;
  return sign *
         std::ldexp(fraction,
                    static_cast<int>(random.below(2 * static_cast<std::uint64_t>(most))) - most);
}

std::vector<Elements> inputs_of(const Program& program, Random& random) {
  std::vector<Elements> inputs;
  for (const ProgramInput& input : program.inputs) {
    const TensorType& type = program.type(input.value);
    Elements& elements = inputs.emplace_back();
    for (std::int64_t i = 0; i < type.num_elements(); ++i) {
      elements.push_back(any_element(type.dtype, random));
    }
  }
  return inputs;
}

/// Compares the bits of two numbers; all NaNs are equal.
bool are_same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

void expect_same_on_all_paths(const Program& program, const std::vector<Elements>& inputs) {
  const PathScope scope;
  const Mesh mesh({1}, {"data"});
  const Plan plan = compile(program, mesh, kCpuTarget);
  std::vector<Elements> oracle;
  for (const KernelPath& path : kernel_paths()) {
    kernels::set_kernel_path(path);
    EngineMesh chips(mesh);
    const auto outputs =
        testing::join(plan, mesh, chips.run(plan, inputs, EngineMesh::Schedule::one_thread));
    if (oracle.empty()) oracle = outputs;
    for (std::size_t output = 0; output < oracle.size(); ++output) {
      for (std::size_t i = 0; i < oracle[output].size(); ++i) {
        ASSERT_TRUE(are_same(outputs[output][i], oracle[output][i]))
            << "vectors " << static_cast<int>(path.vectors) << (path.compiles ? " compiled" : "")
            << ", output " << output << ", element " << i << ": " << outputs[output][i]
            << ", expected " << oracle[output][i] << "\n"
            << to_text(plan.program, mesh);
      }
    }
  }
}

TEST(KernelPaths, GiveTheSameBits) {
  for (const std::uint64_t seed : testing::seeds(400)) {
    Random random(seed);
    constexpr std::array<std::int64_t, 8> kSizes{1, 5, 8, 16, 31, 256, 257, 777};
    Shape shape{kSizes[random.below(kSizes.size())]};
    if (random.one_in(2)) shape = {1 + static_cast<std::int64_t>(random.below(6)), shape[0]};
    if (random.one_in(8)) shape = {2, 3, 40};
    const int ops = static_cast<int>(4 + random.below(60));
    const Chains chains(random, shape, ops, seed % 2 == 0);
    const std::vector<Elements> inputs = inputs_of(chains.program, random);
    expect_same_on_all_paths(chains.program, inputs);
    if (HasFatalFailure()) FAIL() << "seed " << seed;
  }
}

/// The programs read every value again in reverse order, so that all values are alive at once.
TEST(KernelPaths, GiveTheSameBitsWhereRegistersDoNotSuffice) {
  Program program;
  Builder build(program);
  const TensorType type{DType::f32, {100}};
  std::vector<ValueId> values{program.add_input(type, InputKind::data, "x", Sharding::closed())};
  for (int i = 0; i < 60; ++i) {
    values.push_back(build.binary(OpKind::add, build.unary(OpKind::tanh, values.back()),
                                  build.constant(0.1 * i, type)));
  }
  ValueId sum = values.back();
  for (std::size_t i = values.size(); i-- > 0;) {
    const ValueId wins = build.compare(CompareDirection::lt, values[i], sum);
    sum = build.binary(OpKind::divide, build.select(wins, sum, values[i / 2]), values[i]);
  }
  program.add_output(sum, "y", Sharding::closed());
  Random random(1);
  expect_same_on_all_paths(program, inputs_of(program, random));
}

TEST(KernelPaths, AMachineThatForbidsExecutableMemoryRunsTiles) {
  const PathScope scope;
  kernels::set_kernel_path(kernels::parse_kernel_path(""));
  Program program;
  Builder build(program);
  const TensorType type{DType::f32, {1000}};
  const ValueId x = program.add_input(type, InputKind::data, "x", Sharding::closed());
  program.add_output(build.unary(OpKind::tanh, build.unary(OpKind::negate, x)), "y",
                     Sharding::closed());
  const Mesh mesh({1}, {"data"});
  const Plan plan = compile(program, mesh, kCpuTarget);
  Random random(1);
  const std::vector<Elements> inputs = inputs_of(program, random);
  static int calls = 0;
  const auto run = [&] {
    EngineMesh chips(mesh);
    return chips.run(plan, inputs, EngineMesh::Schedule::one_thread);
  };
  EXPECT_EQ(Executor::limitation(), "");
  const auto compiled = run();
  jit::set_protect([](void*, std::size_t, int) {
    ++calls;
    errno = EACCES;
    return -1;
  });
  const std::string limitation = Executor::limitation();
  const auto in_tiles = run();
  jit::set_protect(nullptr);
  EXPECT_EQ(in_tiles, compiled);
  if (!kernels::kernel_path().compiles) GTEST_SKIP() << "this processor has no vectors";
  EXPECT_EQ(calls, 2);
  EXPECT_NE(limitation.find("(mprotect: Permission denied)"), std::string::npos) << limitation;
}

}  // namespace
}  // namespace weft::kernel_paths_test
