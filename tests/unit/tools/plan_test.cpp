#include <weft/tools/weft/plan.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <weft/tests/support/expect_error.hpp>
#include <weft/tests/support/golden.hpp>

namespace weft {
namespace {

/// What `weft plan ARGS` prints.
std::string output_of(const std::vector<std::string>& args) {
  CLI::App app;
  int code = 1;
  add_plan(app, code);
  std::vector<std::string> reversed(args.rbegin(), args.rend());
  reversed.push_back("plan");
  ::testing::internal::CaptureStdout();
  app.parse(reversed);
  EXPECT_EQ(code, 0);
  return ::testing::internal::GetCapturedStdout();
}

std::string golden_file(const char* name) { return testing::golden_path(name).string(); }

TEST(PlanCommand, ShowsMeshShardingsMemoryAndCollectives) {
  testing::expect_golden("weft-plan.txt", output_of({golden_file("plan-v1.bin")}));
}

TEST(PlanCommand, SaysTheSameAsJson) {
  testing::expect_golden("weft-plan.json", output_of({golden_file("plan-v1.bin"), "--json"}));
}

TEST(PlanCommand, RefusesAnotherFile) {
  CLI::App app;
  int code = 0;
  add_plan(app, code);
  testing::expect_error(Errc::corrupt, {"plan file"},
                        [&] { app.parse("plan " + golden_file("shard-v1.bin")); });
  testing::expect_error(Errc::not_found, {"no-such-file"}, [&] { app.parse("plan no-such-file"); });
}

}  // namespace
}  // namespace weft
