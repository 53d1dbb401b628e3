// Tests that composites, partitioned by random shardings, give the reference interpreter's results
// within rounding when they are simulated and run by the real executor. WEFT_TEST_SEED=<seed> runs
// one case again.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/text/text.hpp"
#include "tests/property/seeds.hpp"
#include "tests/support/engine_mesh.hpp"
#include "tests/support/random_program.hpp"

namespace weft::composite_test {
namespace {

using testing::EngineMesh;
using testing::Random;

/// Makes a program of a composite and its gradients, with random shardings of inputs and outputs.
class CompositeMaker {
 public:
  CompositeMaker(const Mesh& mesh, Random& random) : mesh_(mesh), random_(random) {}

  Program run() {
    switch (random_.below(3)) {
      case 0: attention(); break;
      case 1: losses(); break;
      default: rows();
    }
    return std::move(program_);
  }

 private:
  std::int64_t any_size() {
    constexpr std::int64_t kSizes[] = {1, 2, 3, 4, 6, 8, 12, 16};
    return kSizes[random_.below(std::size(kSizes))];
  }

  ValueId input(const Shape& shape) {
    return program_.add_input({DType::f32, shape}, InputKind::data, "in",
                              testing::random_sharding(mesh_, shape, random_));
  }

  void output(ValueId value) {
    program_.add_output(value, "out",
                        testing::random_sharding(mesh_, program_.shape(value), random_));
  }

  void rows() {
    std::vector<std::int64_t> dims(1 + random_.below(3));
    for (std::int64_t& size : dims) size = any_size();
    const Shape shape{std::span<const std::int64_t>(dims)};
    const ValueId x = input(shape);
    const ValueId g = input(shape);
    const Normalization normalization{.center = random_.one_in(2), .eps = 0.1};
    switch (random_.below(3)) {
      case 0: {
        const ValueId y = b_.softmax(x);
        output(y);
        output(b_.softmax_grad(OpKind::softmax_grad, y, g));
        break;
      }
      case 1: {
        const ValueId y = b_.log_softmax(x);
        output(y);
        output(b_.softmax_grad(OpKind::log_softmax_grad, y, g));
        break;
      }
      default:
        output(b_.normalize(x, normalization));
        output(b_.normalize_grad(x, g, normalization));
    }
  }

  /// Adds cross entropies. Their labels include numbers that are no class.
  void losses() {
    std::vector<std::int64_t> dims(random_.below(3));
    for (std::int64_t& size : dims) size = any_size();
    const Shape rows{std::span<const std::int64_t>(dims)};
    dims.push_back(any_size());
    const ValueId x = input(Shape{std::span<const std::int64_t>(dims)});
    const ValueId labels = b_.convert(input(rows), DType::i32);
    output(b_.cross_entropy(x, labels));
    output(b_.cross_entropy_grad(x, labels, input(rows)));
  }

  void attention() {
    const std::int64_t batch = 1 + static_cast<std::int64_t>(random_.below(4));
    const std::int64_t heads = 1 + static_cast<std::int64_t>(random_.below(4));
    const std::int64_t size = any_size();
    const Shape keys{batch, heads, any_size(), size};
    const ValueId q = input({batch, heads, any_size(), size});
    const ValueId k = input(keys);
    const ValueId v = input(keys);
    const AttentionForm form{.causal = random_.one_in(2), .scale = 0.5};
    const ValueId bias = random_.one_in(2) ? kNoId : attention_bias(program_.shape(q), keys[2]);
    const ValueId y = b_.attention(q, k, v, form, bias);
    output(y);
    const ValueId g = input(program_.shape(y));
    output(b_.attention_grad(q, k, v, y, g, form, bias));
  }

  /// Returns a mask, or a bias with some elements of -inf, of any shape that broadcasts to the
  /// scores.
  ValueId attention_bias(const Shape& queries, std::int64_t keys) {
    Shape shape{queries[0], queries[1], queries[2], keys};
    for (int dim = 0; dim < 4; ++dim) {
      if (random_.one_in(2)) shape[dim] = 1;
    }
    const ValueId x = input(shape);
    const TensorType type = program_.type(x);
    const ValueId mask =
        b_.compare(CompareDirection::gt, x, b_.constant(random_.one_in(2) ? -1 : 0, type));
    if (random_.one_in(2)) return mask;
    return b_.select(mask, x, b_.constant(-std::numeric_limits<double>::infinity(), type));
  }

  const Mesh& mesh_;
  Random& random_;
  Program program_;
  Builder b_{program_};
};

void expect_near(const std::vector<Elements>& actual, const std::vector<Elements>& expected,
                 double tolerance, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(actual[i].size(), expected[i].size());
    for (std::size_t j = 0; j < expected[i].size(); ++j) {
      ASSERT_NEAR(actual[i][j], expected[i][j], tolerance)
          << "element " << j << " of output " << i << " of " << what;
    }
  }
}

void check(std::uint64_t seed) {
  static const std::vector<Mesh> meshes = testing::small_meshes();
  Random random(seed);
  const Mesh& mesh = meshes[random.below(meshes.size())];
  const Program program = CompositeMaker(mesh, random).run();
  std::vector<Elements> inputs;
  for (const ProgramInput& input : program.inputs) {
    Elements& elements = inputs.emplace_back();
    for (std::int64_t i = 0; i < program.type(input.value).num_elements(); ++i) {
      elements.push_back(static_cast<double>(random.below(9)) / 4 - 1);
    }
  }
  const auto expected = interpret(program, inputs);
  const Plan plan = compile(program, mesh, kCpuTarget);
  const std::string what = fmt::format("seed {}, mesh {}\n{}plan\n{}", seed, mesh.to_string(),
                                       to_text(program, mesh), to_text(plan.program, mesh));
  // The tolerance covers the constants of decompositions, which are f32.
  ASSERT_NO_FATAL_FAILURE(
      expect_near(simulate(plan.program, mesh, plan.input_types, plan.output_types, inputs),
                  expected, 1e-6, what));
  EngineMesh chips(mesh);
  const auto outputs = chips.run(plan, inputs, EngineMesh::Schedule::one_thread);
  ASSERT_NO_FATAL_FAILURE(expect_near(testing::join(plan, mesh, outputs), expected, 1e-5, what));
}

TEST(Composite, AgreesWithTheInterpreterHoweverItIsSharded) {
  for (const std::uint64_t seed : testing::seeds(2000)) ASSERT_NO_FATAL_FAILURE(check(seed));
}

}  // namespace
}  // namespace weft::composite_test
