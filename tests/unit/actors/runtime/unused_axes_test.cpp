#include "actors/runtime/unused_axes.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/text/text.hpp"

namespace weft::unused_axes_test {
namespace {

/// Returns the hint for a step `w += sum(x, 0)` whose data and parameter have these shardings.
std::optional<std::string> hint(const Mesh& mesh, const std::string& data, const std::string& param,
                                const char* update = "updates 1") {
  const std::string text = fmt::format(R"(program(%0: f32[8,4] data "x" {},
                                                  %1: f32[4] param "w" {}) {{
  %2 = reduce %0 {{kind = add, dims = [0]}} : f32[4]
  %3 = add %1, %2 : f32[4]
  return %3 "w" [{{?}}] {}
}})",
                                       data, param, update);
  return hint_at_unused_axes(compile(parse_program(text, mesh), mesh, kCpuTarget), mesh,
                             "the sync at a.cpp:1");
}

const Mesh kDefault({2, 2}, {"data", "model"});

TEST(UnusedAxes, AreNamedWithTheMeshThatUsesAllChips) {
  EXPECT_EQ(hint(kDefault, R"([{"data"}, {}])", "[{}]"),
            "no tensor in the program of the sync at a.cpp:1 is sharded along \"model\" of the "
            "mesh (2,2) (\"data\",\"model\"): 2 chips do the same part of the work. To divide "
            "the work among all chips, use weft launch --mesh data=4, or backend.spmd");
  const Mesh three({2, 2, 2}, {"a", "b", "c"});
  const auto text = hint(three, R"([{"b"}, {}])", "[{}]");
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("\"a\", \"c\""), text->npos) << *text;
  EXPECT_NE(text->find(": 4 chips do"), text->npos) << *text;
  EXPECT_NE(text->find("--mesh b=8,"), text->npos) << *text;
}

TEST(UnusedAxes, AreThoseThatNeitherDataNorParametersAreCutAlong) {
  EXPECT_FALSE(hint(kDefault, R"([{"data","model"}, {}])", "[{}]"));
  EXPECT_FALSE(hint(kDefault, R"([{"data"}, {}])", R"([{"model"}])"));
  EXPECT_FALSE(hint(Mesh({4}, {"data"}), R"([{"data"}, {}])", "[{}]"));
  EXPECT_FALSE(hint(Mesh({4, 1}, {"data", "model"}), R"([{"data"}, {}])", "[{}]"));
}

/// A program that updates nothing, such as an evaluation, doesn't show how training is sharded.
TEST(UnusedAxes, AreNotLookedForWhereNothingIsCutOrUpdated) {
  EXPECT_FALSE(hint(kDefault, "[{}, {}]", "[{}]"));
  EXPECT_FALSE(hint(kDefault, R"([{"data"}, {}])", "[{}]", ""));
}

}  // namespace
}  // namespace weft::unused_axes_test
