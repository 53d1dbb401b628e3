#include <weft/actors/worker/control.hpp>

#include <gtest/gtest.h>

#include <thread>

#include <weft/tests/support/expect_error.hpp>

namespace weft {
namespace {

using std::chrono::milliseconds;
using testing::expect_error;

constexpr milliseconds kLong{60'000};

TEST(Control, WaitsUntilTheTrainerAllowsIt) {
  Control control(kLong);
  std::jthread trainer([&] {
    control.start();
    control.admit(1);
    control.grant(10);
  });
  control.wait_started();
  control.wait_admitted(0);
  control.wait_granted(9);
}

TEST(Control, ACancelEndsAWaitWithItsReason) {
  Control control(kLong);
  std::jthread trainer([&] { control.cancel("worker 3 was killed"); });
  expect_error(Errc::cancelled, {"worker 3 was killed"}, [&] { control.wait_admitted(0); });
  expect_error(Errc::cancelled, {"worker 3 was killed"}, [&] { control.begin_run(1); });
  EXPECT_TRUE(control.cancelled());
}

TEST(Control, ATimeoutSaysWhatWasWaitedFor) {
  Control control(milliseconds(1));
  expect_error(Errc::timeout, {"lease", "0.001 s"}, [&] { control.wait_granted(0); });
  EXPECT_FALSE(control.wait_stopped(milliseconds(1)));
}

TEST(Control, ARunThatAnotherWorkerTakesNoPartInIsADivergence) {
  Control control(kLong);
  control.begin_run(1);
  EXPECT_FALSE(control.loop_ended(2, 1));
  expect_error(Errc::program_divergence, {"worker 2", "after 1 programs"},
               [&] { control.begin_run(2); });
}

TEST(Control, NoticesARunThatHasBegunAlready) {
  Control control(kLong);
  control.begin_run(1);
  control.begin_run(2);
  const auto wrong = control.loop_ended(2, 1);
  ASSERT_TRUE(wrong);
  EXPECT_NE(wrong->find("number 2"), std::string::npos);
}

}  // namespace
}  // namespace weft
