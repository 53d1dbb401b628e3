#include "inspect/systems/system_views.hpp"

#include <gtest/gtest.h>

#include "tests/unit/inspect/systems/made_system.hpp"

namespace weft::system_views_test {
namespace {

TEST(SystemViews, TreeHasTheJobsOfMeshesAndTheVersionsOfActors) {
  testing::MadeSystem system(3);
  system.add("policy", {"act"}, {0});
  const auto rollouts = system.add("rollouts", {"length"}, {1, 2});
  const std::size_t job = system.add_job(1, {1});
  system.wait_for_rows(job, 12);
  system.run(rollouts + 1, 0, 0, 20);
  system.wait_for_job(rollouts + 1, job, false, 3);
  EXPECT_EQ(
      system_tree_text(system.snapshot),
      "made  0123456789abcdef0123456789abcdef  running  pid 4700  3 processes\n"
      "+ job walk  running  step 204  worker 0's loader has 117 of 512 rows in \"steps\"\n"
      "+ policy  test.policy x 1  restart actor, 0 of 0 used\n"
      "  + [0] pid 4700  idle  mailbox 0/64\n"
      "+ rollouts  test.rollouts x 2  restart actor, 0 of 0 used\n"
      "  + [0] pid 4701  idle                                                  mailbox 0/64  "
      "v203  lag 1\n"
      "  + [1] pid 4702  length() for 20.0 s, waits for a version of \"policy\"  mailbox 0/64\n");
  system.snapshot.jobs[job] = {.id = system.snapshot.jobs[job].id, .state = "gone"};
  EXPECT_NE(
      system_tree_text(system.snapshot).find("\n+ job abcdef0123456789abcdef0123456789  gone\n"),
      std::string::npos);
}

}  // namespace
}  // namespace weft::system_views_test
