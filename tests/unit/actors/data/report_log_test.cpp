#include "actors/data/report_log.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <limits>

#include <nlohmann/json.hpp>

#include "tests/support/expect_error.hpp"

namespace weft::report_log_test {
namespace {

namespace fs = std::filesystem;

class ReportLogTest : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove(path_); }
  const std::string path_ = fs::temp_directory_path() / fmt::format("weft-reports-{}", ::getpid());
};

Report report(std::uint64_t step) {
  return {.worker = 0,
          .generation = 3,
          .step = step,
          .number = 2,
          .metrics = "loss of " + std::to_string(step),
          .checkpoint = "/runs/checkpoint_000004"};
}

std::vector<std::uint64_t> steps(const std::vector<Report>& reports) {
  std::vector<std::uint64_t> result;
  for (const Report& report : reports) result.push_back(report.step);
  return result;
}

TEST_F(ReportLogTest, ASuccessorReadsWhatWasAdded) {
  ReportLog(path_).add(report(std::numeric_limits<std::uint64_t>::max()));
  const std::vector<Report> read = ReportLog(path_).after(0);
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].worker, 0);
  EXPECT_EQ(read[0].generation, 3U);
  EXPECT_EQ(read[0].step, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(read[0].number, 2U);
  EXPECT_EQ(read[0].metrics, "loss of 18446744073709551615");
  EXPECT_EQ(read[0].checkpoint, "/runs/checkpoint_000004");
}

TEST_F(ReportLogTest, LeavesOutThoseThatTheTrainerHas) {
  ReportLog log(path_);
  EXPECT_TRUE(log.after(0).empty());
  for (std::uint64_t step = 1; step <= 3; ++step) log.add(report(step));
  EXPECT_EQ(steps(log.after(0)), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(steps(log.after(2)), (std::vector<std::uint64_t>{3}));
  EXPECT_TRUE(log.after(3).empty());
  EXPECT_TRUE(log.after(9).empty());
}

TEST_F(ReportLogTest, KeepsEveryByteOfTheMetrics) {
  const nlohmann::json metrics{{"loss", std::numeric_limits<double>::quiet_NaN()}};
  const std::vector<std::uint8_t> nan = nlohmann::json::to_cbor(metrics);
  Report sent = report(1);
  sent.metrics = {nan.begin(), nan.end()};
  for (int byte = 0; byte < 256; ++byte) sent.metrics += static_cast<char>(byte);
  ReportLog log(path_);
  log.add(sent);
  EXPECT_EQ(log.after(0).at(0).metrics, sent.metrics);
}

/// A log may end after any byte, because the process may be killed while it writes.
TEST_F(ReportLogTest, CutsWhatIsUnfinished) {
  {
    ReportLog log(path_);
    log.add(report(1));
  }
  const auto whole = fs::file_size(path_);
  for (std::uintmax_t left = 0; left < whole; ++left) {
    SCOPED_TRACE(left);
    ReportLog(path_).add(report(2));
    fs::resize_file(path_, whole + left);
    ReportLog log(path_);
    ASSERT_EQ(fs::file_size(path_), whole);
    ASSERT_EQ(steps(log.after(0)), (std::vector<std::uint64_t>{1}));
    log.add(report(3));
    ASSERT_EQ(steps(log.after(0)), (std::vector<std::uint64_t>{1, 3}));
    fs::resize_file(path_, whole);
  }
}

TEST_F(ReportLogTest, WithoutAPathKeepsNothing) {
  ReportLog log("");
  log.add(report(1));
  EXPECT_TRUE(log.after(0).empty());
}

TEST_F(ReportLogTest, NamesAFileThatCantBeMade) {
  testing::expect_error(Errc::io, {"/nowhere/reports"}, [] { ReportLog("/nowhere/reports"); });
}

}  // namespace
}  // namespace weft::report_log_test
