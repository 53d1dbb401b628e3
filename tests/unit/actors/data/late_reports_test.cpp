#include "actors/data/late_reports.hpp"

#include <gtest/gtest.h>

#include <limits>

#include <nlohmann/json.hpp>

#include "actors/data/report_log.hpp"
#include "actors/data/run_folder.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::late_reports_test {
namespace {

constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

using Rows = std::vector<std::string>;

/// A job that made reports of x, of which its trainer wrote only the first ones.
class LateReports : public ::testing::Test {
 protected:
  /// Adds a report to the log.
  void report(std::uint64_t step, int x, std::uint64_t generation = 1) {
    const std::vector<std::uint8_t> metrics = Metrics::to_cbor({{"x", x}});
    ReportLog(log()).add({.worker = 0,
                          .generation = generation,
                          .step = step,
                          .number = 0,
                          .metrics = {metrics.begin(), metrics.end()},
                          .checkpoint = ""});
  }
  void write(const std::vector<int>& rows) {
    for (const int x : rows) folder_.add({{"x", x}});
  }
  Rows after(std::uint64_t step = kAll) {
    add_late_reports(folder_.path(), log(), step);
    return folder_.rows();
  }
  std::string log() const { return root_.path() + "/control.reports"; }

  const testing::TemporaryFolder root_;
  RunFolder folder_{root_.path(), "run", "0123456789"};
};

TEST_F(LateReports, AreAddedAfterTheLastRow) {
  for (std::uint64_t step = 1; step <= 4; ++step) report(step, static_cast<int>(step) * 10);
  write({10, 20});
  EXPECT_EQ(after(), (Rows{"10\n", "20\n", "30\n", "40\n"}));
  EXPECT_EQ(after(), (Rows{"10\n", "20\n", "30\n", "40\n"})) << "all of them are there already";
}

TEST_F(LateReports, AreAddedWhereNoRowWasWritten) {
  report(1, 10);
  report(2, 20);
  EXPECT_EQ(after(), (Rows{"10\n", "20\n"}));
}

/// The report of step 3 has the row of step 1 again. One row was written, so it is that of step 1.
TEST_F(LateReports, AreFoundWhereALaterReportHasTheLastRowToo) {
  report(1, 10);
  report(2, 20);
  report(3, 10);
  report(4, 40);
  write({10});
  EXPECT_EQ(after(), (Rows{"10\n", "20\n", "10\n", "40\n"}));
}

TEST_F(LateReports, AreFoundWhereAnEarlierReportHasTheLastRowToo) {
  report(1, 10);
  report(2, 20);
  report(3, 10);
  report(4, 40);
  write({10, 20, 10});
  EXPECT_EQ(after(), (Rows{"10\n", "20\n", "10\n", "40\n"}));
}

TEST_F(LateReports, EndAtTheStepFromWhichTheProgramContinues) {
  for (std::uint64_t step = 1; step <= 4; ++step) report(step, static_cast<int>(step) * 10);
  write({10});
  EXPECT_EQ(after(3), (Rows{"10\n", "20\n", "30\n"}));
}

/// The trainer wrote the report of step 4, but not all chips had committed that step.
TEST_F(LateReports, AreRemovedIfTheProgramMakesThemAgain) {
  for (std::uint64_t step = 1; step <= 4; ++step) report(step, static_cast<int>(step) * 10);
  write({10, 20, 30, 40});
  EXPECT_EQ(after(3), (Rows{"10\n", "20\n", "30\n"}));
}

/// After a loss the loop has begun again at step 2.
TEST_F(LateReports, AreAddedOnceThoughALoopRepeatedThem) {
  for (std::uint64_t step = 1; step <= 3; ++step) report(step, static_cast<int>(step) * 10);
  for (std::uint64_t step = 2; step <= 4; ++step) report(step, static_cast<int>(step) * 10, 2);
  write({10});
  EXPECT_EQ(after(), (Rows{"10\n", "20\n", "30\n", "40\n"}));
}

TEST_F(LateReports, AreNotAddedToRowsThatTheLogDoesNotHave) {
  report(1, 10);
  write({77});
  EXPECT_EQ(after(), (Rows{"77\n"}));
}

}  // namespace
}  // namespace weft::late_reports_test
