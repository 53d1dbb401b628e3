#include <gtest/gtest.h>

#include "tests/support/app_process.hpp"

namespace weft::embed_test {
namespace {

TEST(Embed, RunsInThisProcessThenInWorkerProcesses) {
  testing::AppProcess embed({EMBED});
  EXPECT_EQ(embed.wait(), 0);
  EXPECT_EQ(embed.output(),
            "4 chips in this process: norm 18932.469\n"
            "4 chips in worker processes: norm 18932.469\n");
}

}  // namespace
}  // namespace weft::embed_test
