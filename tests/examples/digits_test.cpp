/// Tests the main example in a short form: the same loop runs on every layout.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "tests/support/app_process.hpp"
#include "tests/support/small_shm.hpp"

namespace weft::digits_test {
namespace {

using testing::AppProcess;

nlohmann::json digits(std::vector<std::string> layout) {
  std::vector<std::string> words{DIGITS, "--epochs", "10", "--seed", "7", "--json", "{json}"};
  words.insert(words.end(), layout.begin(), layout.end());
  AppProcess app(words);
  EXPECT_EQ(app.wait(), 0) << app.output();
  const nlohmann::json result = app.result();
  testing::expect_nothing_left(result.at("job"));
  return result;
}

TEST(Digits, ShowsTheMeshAndALinePerEpoch) {
  AppProcess app({DIGITS, "--epochs", "2"});
  EXPECT_NE(app.wait_for_line("mesh (4,4) (\"data\",\"model\")"), "");
  EXPECT_NE(app.wait_for_line("epoch   1/2  loss"), "");
  EXPECT_NE(app.wait_for_line("epoch   2/2  loss"), "");
  EXPECT_NE(app.wait_for_line("time per step: median"), "");
  EXPECT_NE(app.wait_for_line("run folder: "), "");
  EXPECT_EQ(app.wait(), 0);
}

TEST(Digits, GivesOneLossCurveOnEveryLayoutAndTheSameBitsAgain) {
  const std::map<std::string, std::vector<std::string>> layouts{
      {"4 workers of 4 chips", {"--workers", "4", "--chips", "4"}},
      {"1 worker of 1 chip", {"--workers", "1", "--chips", "1"}},
      {"16 chips in this process", {"--workers", "0", "--chips", "16"}},
      {"2 workers of 8 chips", {"--workers", "2", "--chips", "8"}},
      {"4 workers of 4 chips as 8x2", {"--workers", "4", "--chips", "4", "--topology", "8x2"}},
  };
  const auto reference =
      digits({"--workers", "1", "--chips", "1"}).at("loss_history").get<std::vector<double>>();
  ASSERT_EQ(reference.size(), 440U);
  for (const auto& [name, layout] : layouts) {
    SCOPED_TRACE(name);
    const nlohmann::json first = digits(layout);
    EXPECT_EQ(first.at("steps"), 440);
    const auto losses = first.at("loss_history").get<std::vector<double>>();
    ASSERT_EQ(losses.size(), reference.size());
    for (std::size_t i = 0; i < losses.size(); ++i) {
      ASSERT_NEAR(losses[i], reference[i], 1e-4 * reference[i]) << "step " << i;
    }
    const nlohmann::json second = digits(layout);
    EXPECT_EQ(second.at("params_digest"), first.at("params_digest"));
    EXPECT_EQ(second.at("loss_history"), first.at("loss_history"));
  }
}

TEST(Digits, RefusesSizesThatContradictEachOther) {
  AppProcess app({DIGITS, "--workers", "3", "--chips", "4", "--topology", "4x4"});
  EXPECT_EQ(app.wait(), 2);
  EXPECT_NE(app.output().find("16"), std::string::npos) << app.output();
  EXPECT_NE(app.output().find("12"), std::string::npos) << app.output();
}

TEST(Digits, WritesItsJsonWhereItFailsBeforeItReports) {
  AppProcess app({DIGITS, "--workers", "0", "--chips", "5", "--epochs", "1", "--json", "{json}"});
  EXPECT_EQ(app.wait(), 1) << app.output();
  const auto error = app.result().at("error").get<std::string>();
  EXPECT_NE(error.find("don't divide dim 0, of size 32"), std::string::npos) << error;
}

/// Each size of /dev/shm is too small for another part of the job's memory: the board, the black
/// box, the control segment, the mailboxes, the buffers of the first chips, or those of later
/// chips.
TEST(Digits, SaysHowToEnlargeAFullShmAndLeavesNothing) {
  for (const std::size_t kib : {8, 64, 256, 1024, 4096, 12288}) {
    testing::in_own_shm(fmt::format("size={}k", kib), [kib] {
      AppProcess app({DIGITS, "--epochs", "1"});
      const int code = app.wait();
      EXPECT_EQ(code, kib <= 256 ? 2 : 1) << "2: refused before anything ran";
      for (const std::string& word :
           {std::string(" needs "), fmt::format("of {} bytes free", kib * 1024),
            std::string("mount -o remount,size="), std::string("docker run --shm-size=")}) {
        EXPECT_NE(app.output().find(word), std::string::npos) << word << "\n" << app.output();
      }
    });
  }
}

}  // namespace
}  // namespace weft::digits_test
