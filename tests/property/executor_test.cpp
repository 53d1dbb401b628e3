// Tests that random programs, partitioned and run by the real executor on real arenas, give bitwise
// the reference interpreter's results: on small integers every sum is exact in any order.
// WEFT_TEST_SEED=<seed> runs one case again.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "spmd/ops/attribute_views.hpp"
#include "spmd/ops/infer.hpp"
#include "spmd/program/element.hpp"
#include "spmd/program/window.hpp"
#include "spmd/text/text.hpp"
#include "tests/property/seeds.hpp"
#include "tests/support/engine_mesh.hpp"
#include "tests/support/random_program.hpp"
#include "tests/support/random_training.hpp"
#include "tests/support/shrink.hpp"
#include "tests/support/target.hpp"

namespace weft::executor_test {
namespace {

using testing::EngineMesh;
using testing::join;
using testing::Random;
using testing::small_integers;

/// Returns the program with `dtype` in place of f32.
Program retype(const Program& program, DType dtype) {
  Program result = program;
  for (TensorType& type : result.value_types) {
    if (type.dtype == DType::f32) type.dtype = dtype;
  }
  result.const_pool.clear();
  for (OpId op = 0; op < program.num_ops(); ++op) {
    if (program.kind(op) != OpKind::constant) continue;
    const DType from = program.type(program.result(op)).dtype;
    const DType to = result.type(result.result(op)).dtype;
    const std::int64_t count = program.op_attrs(op)[1] / byte_size(from);
    const std::byte* element = program.const_pool.data() + program.op_attrs(op)[0];
    std::vector<std::byte>& pool = result.const_pool;
    const std::size_t offset = (pool.size() + 7) / 8 * 8;
    pool.resize(offset + static_cast<std::size_t>(count * byte_size(to)));
    for (std::int64_t i = 0; i < count; ++i) {
      store_element(to, load_element(from, element + i * byte_size(from)),
                    pool.data() + offset + i * byte_size(to));
    }
    std::int64_t* attrs = result.attrs.data() + result.attr_begin[op];
    attrs[0] = static_cast<std::int64_t>(offset);
    attrs[1] = count * byte_size(to);
  }
  return result;
}

/// Returns the largest possible magnitude of an element of an op's result, or of a partial sum from
/// which the element is computed.
double magnitude_of(const Program& program, OpId op, std::span<const double> operands) {
  const auto elements = [&](ValueId value) {
    return static_cast<double>(program.type(value).num_elements());
  };
  const ValueId result = program.result(op);
  switch (program.kind(op)) {
    case OpKind::constant: return 2;
    case OpKind::iota: return elements(result);
    case OpKind::compare: return 1;
    case OpKind::rng_bit_generator: return 1;  // random bits are only compared, never added
    case OpKind::custom_call:                  // any op of custom_ops.hpp
      return (operands[0] * operands[0] + 3) * elements(program.op_operands(op)[0]);
    case OpKind::scatter: return operands[1] * elements(program.op_operands(op)[0]);
    case OpKind::merge:
    case OpKind::select: return std::max(operands[1], operands[2]);
    case OpKind::add:
    case OpKind::subtract: return operands[0] + operands[1];
    case OpKind::multiply: return operands[0] * operands[1];
    case OpKind::maximum:
    case OpKind::minimum:
    case OpKind::dynamic_update_slice:
    case OpKind::pad: return std::max(operands[0], operands[1]);
    case OpKind::concatenate: return std::ranges::max(operands);
    case OpKind::dot_general: {
      const Shape& lhs = program.shape(program.op_operands(op)[0]);
      double terms = 1;
      for (const std::int64_t dim : dot_dims(program.op_attrs(op)).lhs_contracting) {
        terms *= static_cast<double>(lhs[static_cast<int>(dim)]);
      }
      return terms * operands[0] * operands[1];
    }
    case OpKind::convolution: {
      const Shape& rhs = program.shape(program.op_operands(op)[1]);
      const Convolution c = convolution_of(program.op_attrs(op), rhs);
      double terms = static_cast<double>(rhs[static_cast<int>(c.rhs[0])]);
      for (const WindowDim& window : c.window) terms *= static_cast<double>(window.size);
      return terms * operands[0] * operands[1];
    }
    case OpKind::reduce_window:
    case OpKind::select_and_scatter: {
      double most = operands.back();
      for (const WindowDim& window : window_reduction_of(program.op_attrs(op)).dims) {
        most *= static_cast<double>(window.size);
      }
      return most;
    }
    case OpKind::reduce:
      return operands[0] * elements(program.op_operands(op)[0]) / elements(result);
    default: return operands[0];
  }
}

/// Returns the largest magnitude of any value, for inputs in -2..2.
double magnitude(const Program& program) {
  std::vector<double> magnitudes(program.num_values(), 2);
  for (OpId op = 0; op < program.num_ops(); ++op) {
    std::vector<double> operands;
    for (const ValueId operand : program.op_operands(op)) operands.push_back(magnitudes[operand]);
    magnitudes[program.result(op)] = magnitude_of(program, op, operands);
  }
  return *std::ranges::max_element(magnitudes);
}

/// Returns a dtype in which this program is exact. If there is none, or if the program has loops,
/// whose carries grow, returns a wide dtype.
DType any_exact_dtype(const Program& program, Random& random) {
  const bool loops = std::ranges::count(program.op_kinds, OpKind::loop) > 0;
  const bool calls = std::ranges::count(program.op_kinds, OpKind::custom_call) > 0;
  const double most = loops ? std::numeric_limits<double>::infinity() : magnitude(program);
  const bool may_be_narrow = !calls && random.one_in(2);
  if (may_be_narrow && most <= 0x1p7 - 1) return DType::i8;
  if (may_be_narrow && most <= 0x1p11) return DType::f16;
  if (most < 0x1p24 && !random.one_in(4)) return DType::f32;
  return random.one_in(2) ? DType::f64 : DType::i64;
}

using Equal = bool (*)(const Elements& found, const Elements& expected);

/// Returns whether elements agree within rounding of f64, which depends on the order of sums.
bool are_near(const Elements& found, const Elements& expected) {
  double most = 1;
  for (const double element : expected) most = std::max(most, std::abs(element));
  return std::ranges::equal(found, expected,
                            [&](double a, double b) { return std::abs(a - b) <= 1e-8 * most; });
}

/// Succeeds if two runs by the executor give the program's results. A failure says where the
/// results differ.
::testing::AssertionResult agrees(
    const Program& program, const Mesh& mesh, std::uint64_t seed,
    Equal equal = [](const Elements& found, const Elements& expected) {
      return found == expected;
    }) {
  Random random(seed);
  const auto schedule =
      random.one_in(4) ? EngineMesh::Schedule::thread_per_chip : EngineMesh::Schedule::one_thread;
  // Every value of a random program has fewer than 65536 bytes. So a plan shares all values or
  // none, and recomputes all or none.
  const Target target =
      testing::cpu_target_with({.shared_bytes_min = random.one_in(2) ? 0 : 65536,
                                .recomputed_bytes_min = random.one_in(2) ? 0 : 65536});
  const std::vector<Elements> inputs = small_integers(program, random);
  const Plan plan = compile(program, mesh, target);
  EngineMesh chips(mesh);
  const auto loaded = chips.load(plan, random.one_in(2));
  const auto outputs = chips.run(loaded, inputs, schedule);
  // The second run finds the first run's values in the temporaries, which must not matter.
  const bool again = chips.run(loaded, inputs, EngineMesh::Schedule::one_thread) == outputs;
  const auto expected = interpret(program, mesh, inputs);
  if (again && std::ranges::equal(join(plan, mesh, outputs), expected, equal)) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure()
         << (again ? "wrong" : "not the same again") << " on mesh " << mesh.to_string() << "\n"
         << to_text(program, mesh) << "plan\n"
         << to_text(plan.program, mesh);
}

TEST(Executor, AgreesWithTheInterpreterOnRandomTraining) {
  const std::vector<Mesh> all = testing::small_meshes();
  for (const std::uint64_t seed : testing::seeds(200)) {
    Random random(seed);
    const Mesh& mesh = all[random.below(all.size())];
    const Program program = retype(testing::random_training(mesh, random), DType::f64);
    ASSERT_TRUE(agrees(program, mesh, seed, are_near)) << "seed " << seed;
  }
}

TEST(Executor, AgreesWithTheInterpreterOnRandomPrograms) {
  const std::vector<Mesh> all = testing::small_meshes();
  for (const std::uint64_t seed : testing::seeds(3000)) {
    Random random(seed);
    const Mesh& mesh = all[random.below(all.size())];
    const Program made = seed % 3 == 0   ? testing::random_program(mesh, random)
                         : seed % 3 == 1 ? testing::random_program_of_narrow(mesh, random)
                                         : testing::random_program_of_shards(mesh, random);
    const Program program = retype(made, any_exact_dtype(made, random));
    if (agrees(program, mesh, seed)) continue;
    const Program left = testing::shrink(
        program,
        testing::of_valid(mesh, [&](const Program& tried) { return !agrees(tried, mesh, seed); }));
    FAIL() << "seed " << seed << ", shrunk from " << program.num_ops() << " ops to "
           << left.num_ops() << ": " << agrees(left, mesh, seed).message();
  }
}

}  // namespace
}  // namespace weft::executor_test
