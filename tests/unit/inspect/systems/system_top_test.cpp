/// Tests the screen of `weft inspect top` of an actor system.

#include "inspect/systems/system_top.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/inspect/systems/made_system.hpp"

namespace weft::system_top_test {
namespace {

using testing::MadeSystem;

/// Two moments of a system that are 2 s apart.
struct Moments {
  Moments() : before(2), now(2) {
    for (MadeSystem* system : {&before, &now}) system->add("policy", {"act"}, {0, 1, 1, 1, 1});
    now.snapshot.at_ns += 2 * MadeSystem::kSecond;
    for (std::uint32_t row = 0; row < 5; ++row) {
      before.actor(row).begun = 100;
      now.actor(row).begun = 100 + 20 * (row + 1);
    }
  }
  std::vector<std::string> frame(SystemTopUi& ui, int lines = 24, int columns = 120) {
    return system_frame(now.snapshot, before.snapshot, ui, lines, columns);
  }

  MadeSystem before;
  MadeSystem now;
};

bool has(const std::string& line, const std::string& text) {
  return line.find(text) != std::string::npos;
}

TEST(SystemTop, ShowsRatesAndWhatActorsDo) {
  Moments moments;
  moments.now.run(2, 0, 0, 0.5);
  SystemTopUi ui;
  const auto lines = moments.frame(ui);
  ASSERT_EQ(lines.size(), 8U);
  EXPECT_TRUE(has(lines[0], "made")) << lines[0];
  EXPECT_TRUE(has(lines[0], "5 actors  150 functions/s")) << lines[0];
  EXPECT_TRUE(has(lines[1], "begun/s")) << lines[1];
  EXPECT_TRUE(has(lines[2], "policy[0]") && has(lines[2], "4700") && has(lines[2], " 10 "))
      << lines[2];
  EXPECT_TRUE(has(lines[4], "policy[2]") && has(lines[4], "act() for 500 ms")) << lines[4];
  EXPECT_TRUE(has(lines[7], "q: quit"));
}

TEST(SystemTop, SortsByRate) {
  Moments moments;
  SystemTopUi ui;
  press(ui, "s");
  EXPECT_TRUE(has(moments.frame(ui)[2], "policy[4]"));
  press(ui, "s");
  EXPECT_TRUE(has(moments.frame(ui)[2], "policy[0]"));
}

TEST(SystemTop, ScrollsWithinTheList) {
  Moments moments;
  SystemTopUi ui;
  press(ui, "\x1b[A");
  EXPECT_TRUE(has(moments.frame(ui, 5)[2], "policy[0]"));
  for (int i = 0; i < 20; ++i) press(ui, "\x1b[B");
  const auto lines = moments.frame(ui, 5);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_TRUE(has(lines[3], "policy[4]"));
  press(ui, "q");
  EXPECT_TRUE(ui.quit);
}

TEST(SystemTop, FitsASmallScreen) {
  Moments moments;
  SystemTopUi ui;
  for (const std::string& line : moments.frame(ui, 1, 10)) EXPECT_LE(line.size(), 10U) << line;
}

TEST(SystemTop, CountsNothingForAnActorThatWasMadeMeanwhile) {
  Moments moments;
  moments.now.actor(3).begun = 4;  // the actor's process was started again
  SystemTopUi ui;
  EXPECT_TRUE(has(moments.frame(ui)[5], "  0  ")) << moments.frame(ui)[5];
}

}  // namespace
}  // namespace weft::system_top_test
