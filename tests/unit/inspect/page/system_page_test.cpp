/// Tests the page and the metrics of actor systems.

#include "inspect/page/system_page.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include <nlohmann/json.hpp>

#include "inspect/page/page_state.hpp"
#include "inspect/systems/system_why.hpp"
#include "tests/unit/inspect/made_job.hpp"
#include "tests/unit/inspect/systems/made_system.hpp"

namespace weft::system_page_test {
namespace {

using Json = nlohmann::json;
using testing::MadeSystem;

/// Returns a system whose actor b[0] is busy, while a[0] waits for it.
MadeSystem busy_system() {
  MadeSystem system(2);
  const auto a = system.add("a", {"f"}, {0});
  const auto b = system.add("b", {"g"}, {1, 1});
  system.run(a, 0, 0, 20);
  system.run(b, 0, 0, 10);
  system.actor(b).is_awaited = false;
  system.wait_for(a, b, 0);
  system.actor(b).box = 1;
  system.actor(b).begun = 7;
  system.actor(b + 1).position.incarnation = 3;
  return system;
}

TEST(SystemPage, HasARowForEachActor) {
  const SystemSnapshot system = busy_system().snapshot;
  const Json state = Json::parse(system_page_state(system, explain_system(system, system)));
  EXPECT_EQ(state.at("name"), "made");
  EXPECT_EQ(state.at("state"), "running");
  EXPECT_EQ(state.at("why").at("roots")[0].at("class"), "BUSY");
  const Json& actors = state.at("actors");
  ASSERT_EQ(actors.size(), 3);
  EXPECT_EQ(actors[0].at("state"), "waiting");
  EXPECT_EQ(actors[0].at("doing"), "f(), waits for b[0].g");
  EXPECT_EQ(actors[1].at("state"), "running");
  EXPECT_EQ(actors[1].at("mailbox"), 1);
  EXPECT_EQ(actors[1].at("pid"), 4701);
  EXPECT_EQ(actors[2].at("state"), "idle");
  EXPECT_EQ(actors[2].at("restarts"), 2);
  EXPECT_TRUE(actors[2].at("since").is_null());
}

/// The text stays the same while nothing changes, so the server sends nothing.
TEST(SystemPage, HasNoTimeThatPasses) {
  MadeSystem system = busy_system();
  const std::array before{system.snapshot};
  const Json rows = page_actors(before);
  system.snapshot.at_ns += MadeSystem::kSecond;
  const std::array now{system.snapshot};
  EXPECT_EQ(page_actors(now), rows);
}

TEST(SystemPage, ShowsStoppedAndDeadProcesses) {
  MadeSystem system = busy_system();
  system.snapshot.processes[1].process.state = 'T';
  const std::array stopped{system.snapshot};
  EXPECT_EQ(page_actors(stopped)[1].at("state"), "stopped");
  EXPECT_EQ(page_actors(stopped)[0].at("state"), "waiting");
  system.snapshot.is_held = false;
  const std::array dead{system.snapshot};
  EXPECT_EQ(page_actors(dead)[0].at("state"), "gone");
}

TEST(SystemPage, AddsTheProgramsActorsToTheJobs) {
  const testing::MadeJob job(1, 1);
  const std::array systems{busy_system().snapshot};
  const Json state = Json::parse(page_state(job.snapshot, {}, nullptr, systems));
  ASSERT_EQ(state.at("actors").size(), 3 + 3);
  EXPECT_EQ(state.at("actors")[3].at("name"), "a[0]");
}

TEST(SystemMetrics, HaveTheActorsOfEachSystem) {
  const std::array systems{busy_system().snapshot};
  const std::string text = system_metrics_text(systems);
  const std::string labels = R"({system="0123456789abcdef0123456789abcdef",actor="b[0]"})";
  for (const std::string& line :
       {std::string(R"(weft_actor_system_info{system="0123456789abcdef0123456789abcdef",)"
                    R"(name="made",state="running"} 1)"),
        "weft_actor_unread_messages" + labels + " 1", "weft_actor_box_messages" + labels + " 1",
        "weft_actor_busy_seconds" + labels + " 10", "weft_actor_functions_total" + labels + " 7",
        "weft_actor_restarts_total" + labels + " 0"}) {
    EXPECT_NE(("\n" + text).find("\n" + line + "\n"), std::string::npos) << line << "\n" << text;
  }
  EXPECT_EQ(system_metrics_text({}), "");
}

}  // namespace
}  // namespace weft::system_page_test
