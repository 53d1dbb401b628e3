// Tests gradients of random programs with loops, branches and functions of shard_map, and gradients
// of these gradients. The gradients on N simulated chips must equal the interpreter's gradients,
// which must equal finite differences. WEFT_TEST_SEED=<seed> runs one random case again.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/plan/plan.hpp"
#include "spmd/reference/interpret.hpp"
#include "spmd/text/text.hpp"
#include "tests/property/seeds.hpp"
#include "tests/support/random_program.hpp"
#include "tests/support/random_training.hpp"
#include "tests/support/shrink.hpp"

namespace weft::gradient_test {
namespace {

using testing::Random;
using Inputs = std::vector<Elements>;

const std::vector<Mesh>& meshes() {
  static const std::vector<Mesh> all{Mesh({1}, {"a"}),         Mesh({2}, {"a"}),
                                     Mesh({3}, {"a"}),         Mesh({4}, {"a"}),
                                     Mesh({2, 2}, {"a", "b"}), Mesh({6}, {"a"}),
                                     Mesh({4, 2}, {"a", "b"}), Mesh({2, 2, 2}, {"a", "b", "c"})};
  return all;
}

double largest(const Elements& elements) {
  double most = 0;
  for (const double element : elements) most = std::max(most, std::abs(element));
  return most;
}

/// Returns whether elements agree within rounding. They may not be exact, because a maximum that
/// occurs several times divides its gradient, and some functions aren't polynomials.
bool is_near(const Elements& found, const Elements& expected) {
  const double tolerance = 1e-8 * (1 + largest(expected));
  return std::ranges::equal(found, expected,
                            [&](double a, double b) { return std::abs(a - b) <= tolerance; });
}

::testing::AssertionResult agrees(const Program& program, const Mesh& mesh, std::uint64_t seed) {
  Random random(seed);
  const Inputs inputs = testing::small_integers(program, random);
  const auto said = [&] { return to_text(program, mesh) + "on mesh " + mesh.to_string(); };
  const auto expected = interpret(program, mesh, inputs);
  try {
    const Plan plan = compile(program, mesh, kCpuTarget);
    const auto found = simulate(plan.program, mesh, plan.input_types, plan.output_types, inputs);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (is_near(found[i], expected[i])) continue;
      return ::testing::AssertionFailure() << "output " << i << " of\n"
                                           << said() << "\nplan\n"
                                           << to_text(plan.program, mesh);
    }
  } catch (const Error& error) {
    return ::testing::AssertionFailure() << error.what() << " in\n" << said();
  }
  return ::testing::AssertionSuccess();
}

using MakeProgram = Program (*)(const Mesh& mesh, Random& random);

void check_random_programs(MakeProgram make, std::uint64_t count) {
  for (const std::uint64_t seed : testing::seeds(count)) {
    Random random(seed);
    const Mesh& mesh = meshes()[random.below(meshes().size())];
    const Program program = make(mesh, random);
    const auto result = [&](const Program& tried) { return agrees(tried, mesh, seed); };
    if (result(program)) continue;
    const Program left = testing::shrink(
        program, testing::of_valid(mesh, [&](const Program& tried) { return !result(tried); }));
    ASSERT_TRUE(result(left)) << "seed " << seed;
  }
}

TEST(Gradients, OfRandomProgramsAgreeOnAllMeshes) {
  check_random_programs(testing::random_program_of_gradients, 3000);
}

TEST(Gradients, OfGradientsOfRandomProgramsAgreeOnAllMeshes) {
  check_random_programs(testing::random_program_of_second_gradients, 1000);
}

TEST(Gradients, OfRandomTrainingAgreeOnAllMeshes) {
  check_random_programs(testing::random_training, 600);
}

/// A line in the space of a program's inputs, through a random point in a random direction.
class Line {
 public:
  Line(const Program& program, const Mesh& mesh, Random& random) : program_(program), mesh_(mesh) {
    at_ = testing::small_integers(program, random);
    for (std::size_t i = 0; i < at_.size(); ++i) {
      const bool moves = is_floating(program.type(program.inputs[i].value).dtype);
      Elements& step = step_.emplace_back();
      for (double& element : at_[i]) {
        if (moves) element = any_real(random);
        step.push_back(moves ? any_real(random) : 0);
      }
    }
  }

  /// Returns the program's outputs for the inputs at this distance along the line; output 0 is the
  /// loss.
  Inputs values(double distance = 0) const {
    Inputs inputs = at_;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      for (std::size_t e = 0; e < inputs[i].size(); ++e) inputs[i][e] += distance * step_[i][e];
    }
    return interpret(program_, mesh_, inputs);
  }
  double slope(double distance) const {
    return (values(distance)[0][0] - values(-distance)[0][0]) / (2 * distance);
  }
  /// Returns the slope of the loss along the line, computed from the gradients among the outputs.
  double slope_of(const Inputs& values) const {
    double slope = 0;
    std::size_t output = 1;
    for (std::size_t i = 0; i < step_.size(); ++i) {
      if (!is_floating(program_.type(program_.inputs[i].value).dtype)) continue;
      const Elements& gradient = values[output++];
      for (std::size_t e = 0; e < gradient.size(); ++e) slope += gradient[e] * step_[i][e];
    }
    return slope;
  }

 private:
  static double any_real(Random& random) {
    return static_cast<double>(random.below(std::uint64_t{1} << 50)) * 0x1p-48 - 2;
  }

  const Program& program_;
  const Mesh& mesh_;
  Inputs at_, step_;
};

TEST(Gradients, OfRandomProgramsAreThoseOfDifferences) {
  const std::vector<std::uint64_t> seeds = testing::seeds(3000);
  std::size_t smooth = 0;
  for (const std::uint64_t seed : seeds) {
    Random random(seed);
    const Mesh& mesh = meshes()[random.below(meshes().size())];
    const Program program = testing::random_program_of_gradients(mesh, random);
    const Line line(program, mesh, random);
    const double wide = line.slope(1e-4);
    const double narrow = line.slope(5e-5);
    const double scale = 1 + std::abs(narrow);
    // If the slopes differ, the loss has a kink or a jump nearby, or is too large for differences.
    if (!(std::abs(wide - narrow) <= 1e-4 * scale)) continue;
    ++smooth;
    const double exact = (4 * narrow - wide) / 3;
    ASSERT_NEAR(line.slope_of(line.values()), exact, 1e-4 * scale)
        << "seed " << seed << " of\n"
        << to_text(program, mesh) << "on mesh " << mesh.to_string();
  }
  EXPECT_GE(smooth, seeds.size() * 8 / 10);
}

}  // namespace
}  // namespace weft::gradient_test
