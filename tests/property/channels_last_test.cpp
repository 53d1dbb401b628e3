// Tests that the pass channels_last() changes no bit of the results of random programs: on small
// integers every sum is exact. WEFT_TEST_SEED=<seed> runs one random case again.

#include "spmd/passes/channels_last.hpp"

#include <gtest/gtest.h>

#include "spmd/ops/verify.hpp"
#include "spmd/passes/canonicalize.hpp"
#include "spmd/reference/interpret.hpp"
#include "spmd/text/text.hpp"
#include "tests/property/seeds.hpp"
#include "tests/support/random_program.hpp"

namespace weft::channels_last_test {
namespace {

TEST(ChannelsLast, RandomProgramsComputeTheSame) {
  const Mesh mesh({1}, {"a"});
  const std::vector<std::uint64_t> seeds = testing::seeds(4000);
  std::size_t count = 0;
  for (const std::uint64_t seed : seeds) {
    // In every second case transposes cost nothing, so that all operands of convolutions are moved.
    const auto transpose_cost = static_cast<std::int64_t>(seed % 2);
    testing::Random random(seed);
    const Program program = canonicalize(testing::random_program(mesh, random), false);
    const std::optional<Program> moved = channels_last(program, transpose_cost);
    if (!moved) continue;
    ++count;
    const Program clean = canonicalize(*moved, false);
    const auto texts = [&] { return to_text(program, mesh) + "moved\n" + to_text(clean, mesh); };
    ASSERT_NO_THROW(verify(clean, mesh)) << "seed " << seed << "\n" << texts();
    const std::vector<Elements> inputs = testing::small_integers(program, random);
    ASSERT_EQ(interpret(clean, inputs), interpret(program, inputs)) << "seed " << seed << "\n"
                                                                    << texts();
  }
  EXPECT_GE(count, seeds.size() / 50);
}

}  // namespace
}  // namespace weft::channels_last_test
