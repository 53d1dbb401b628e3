// Damages plans of random programs, as a plan file may be damaged, and runs those that verify()
// accepts: they must compute what their program says. WEFT_TEST_SEED=<seed> runs one case again.

#include <gtest/gtest.h>

#include <cmath>

#include "spmd/text/text.hpp"
#include "tests/property/seeds.hpp"
#include "tests/support/engine_mesh.hpp"
#include "tests/support/random_program.hpp"
#include "tests/support/target.hpp"

namespace weft::plan_mutation_test {
namespace {

using testing::EngineMesh;
using testing::Random;

template <typename T>
T& any_of(std::vector<T>& list, Random& random) {
  return list[random.below(list.size())];
}

/// Makes each output update an unused input of its type, if there is one.
void add_updates(Program& program) {
  std::vector<bool> is_updated(program.inputs.size(), false);
  for (const ProgramOutput& output : program.outputs) {
    if (output.updates >= 0) is_updated[static_cast<std::size_t>(output.updates)] = true;
  }
  for (ProgramOutput& output : program.outputs) {
    for (std::size_t i = 0; i < program.inputs.size() && output.updates < 0; ++i) {
      ProgramInput& input = program.inputs[i];
      if (is_updated[i] || program.type(input.value) != program.type(output.value)) continue;
      is_updated[i] = true;
      input.kind = InputKind::param;
      output.sharding = input.sharding;
      output.updates = static_cast<std::int32_t>(i);
    }
  }
}

/// Makes one random change to the plan's steps, places, tile buffers or donations.
void damage(Plan& plan, Random& random) {
  const auto step_at = [&] {
    return plan.steps.begin() + static_cast<std::ptrdiff_t>(random.below(plan.steps.size()));
  };
  switch (random.below(11)) {
    case 0: std::swap(*step_at(), *step_at()); break;
    case 1: {
      const PlanStep moved = *step_at();
      plan.steps.erase(std::ranges::find(plan.steps, moved));
      if (plan.steps.empty()) break;
      plan.steps.insert(step_at(), moved);
      break;
    }
    case 2: plan.steps.erase(step_at()); break;
    case 3: {
      const PlanStep again = *step_at();
      plan.steps.insert(step_at(), again);
      break;
    }
    case 4: step_at()->kind = static_cast<StepKind>(random.below(11)); break;
    case 5: {
      const auto step = step_at();
      step->count += random.one_in(2) ? 1 : ~0U;
      break;
    }
    case 6: any_of(plan.slots, random).offset = any_of(plan.slots, random).offset; break;
    case 7: any_of(plan.slots, random) = any_of(plan.slots, random); break;
    case 8:
      if (plan.tiles.empty()) break;
      any_of(plan.tiles, random).buffer = any_of(plan.tiles, random).buffer;
      break;
    case 9:
      if (plan.tiles.empty()) break;
      any_of(plan.tiles, random).value = any_of(plan.tiles, random).value;
      break;
    default:
      if (plan.donated.empty()) break;
      plan.donated[random.below(plan.donated.size())].flip();
      break;
  }
}

bool is_accepted(const Plan& plan, const Mesh& mesh) {
  try {
    verify(plan, mesh);
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::corrupt) << error.what();
    return false;
  }
}

TEST(PlanMutation, WhatIsAcceptedComputesTheProgram) {
  const std::vector<Mesh> meshes = testing::small_meshes();
  int accepted = 0;
  for (const std::uint64_t seed : testing::seeds(1500)) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Mesh& mesh = meshes[random.below(4)];
    Program program = testing::random_program(mesh, random);
    add_updates(program);
    const std::vector<Elements> inputs = testing::small_integers(program, random);
    const std::vector<Elements> expected = interpret(program, inputs);
    const bool is_exact = std::ranges::all_of(expected, [](const Elements& elements) {
      return std::ranges::all_of(elements, [](double x) { return std::abs(x) < 0x1p20; });
    });
    if (!is_exact) continue;
    const Plan right =
        compile(program, mesh,
                testing::cpu_target_with({.shared_bytes_min = random.one_in(2) ? 0 : 65536,
                                          .recomputed_bytes_min = random.one_in(2) ? 0 : 65536}));
    if (right.steps.empty()) continue;
    for (int tried = 0; tried < 20; ++tried) {
      Plan plan = right;
      damage(plan, random);
      if (!is_accepted(plan, mesh)) continue;
      ++accepted;
      if (tried > 2 && plan.steps == right.steps && plan.donated == right.donated) continue;
      EngineMesh chips(mesh);
      const auto loaded = chips.load(plan, true);
      const auto outputs = chips.run(loaded, inputs, EngineMesh::Schedule::one_thread);
      ASSERT_EQ(testing::join(plan, mesh, outputs), expected)
          << to_text(plan.program, mesh) << "seed " << seed;
    }
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace weft::plan_mutation_test
