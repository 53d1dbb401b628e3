#include <gtest/gtest.h>

#include "tests/support/app_process.hpp"

namespace weft::allreduce_test {
namespace {

TEST(Allreduce, LearnsTheSameInOneProcessAndInSeveral) {
  std::string first;
  for (const char* layout : {"0 4", "1 4", "2 2", "4 1"}) {
    const std::string words = layout;
    testing::AppProcess app(
        {ALLREDUCE, "--workers", words.substr(0, 1), "--chips", words.substr(2)});
    EXPECT_EQ(app.wait(), 0);
    const std::string output = app.output();
    EXPECT_TRUE(
        output.starts_with("4 chips, each with its own samples: largest error of 64 weights"))
        << output;
    if (first.empty()) first = output;
    EXPECT_EQ(output, first);
  }
}

}  // namespace
}  // namespace weft::allreduce_test
