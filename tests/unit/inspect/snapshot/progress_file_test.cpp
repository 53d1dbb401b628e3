#include "inspect/snapshot/progress_file.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace weft::progress_file_test {
namespace {

std::optional<double> last_loss(const std::string& csv) { return loss_of(last_metrics(csv)); }

TEST(LastMetrics, AreTheLastNumberOfEachColumn) {
  const auto metrics = last_metrics(
      "step,loss,\"a,b\",note,test_accuracy\n"
      "1,0.5,7,x,0.25\n"
      "2,nan,8,y,\n"
      "3,0.1");
  ASSERT_EQ(metrics.size(), 4U);
  EXPECT_EQ(metrics[0].name, "step");
  EXPECT_EQ(metrics[0].value, 2);
  EXPECT_EQ(metrics[1].name, "loss");
  EXPECT_TRUE(std::isnan(metrics[1].value));
  EXPECT_EQ(metrics[2].name, "a,b");
  EXPECT_EQ(metrics[2].value, 8);
  EXPECT_EQ(metrics[3].name, "test_accuracy");
  EXPECT_EQ(metrics[3].value, 0.25);
}

TEST(LastLoss, IsThatOfTheLastWholeRow) {
  EXPECT_EQ(last_loss("step,loss\n1,0.5\n2,0.25\n"), 0.25);
  EXPECT_EQ(last_loss("step,loss\n1,0.5\n2,0.2"), 0.5);
  EXPECT_EQ(last_loss("train_loss,step\n0.5,1\n"), 0.5);
  EXPECT_EQ(last_loss("note,loss\n\"a,b\",0.5\n"), 0.5);
}

TEST(LastLoss, IsNothingWhereThereIsNone) {
  for (const char* csv : {"", "loss", "loss\n", "step\n1\n", "step,loss\n1\n", "step,loss\n1,\n",
                          "step,loss\n1,high\n", "loss\n\"a\"b\n1\n"}) {
    EXPECT_EQ(last_loss(csv), std::nullopt) << csv;
  }
}

}  // namespace
}  // namespace weft::progress_file_test
