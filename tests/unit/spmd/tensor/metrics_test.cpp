#include <weft/inspect/metrics.hpp>

#include <gtest/gtest.h>

#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::metrics_test {
namespace {

using testing::expect_error;
using testing::f32;
using MetricsTest = testing::TensorTest;

TEST(MetricsTable, ReportsAsTorchXlaDoes) {
  MetricsTable table;
  for (int i = 1; i <= 100; ++i) table.sample("CompileTime", MetricUnit::seconds, 1e-3 * i);
  table.sample("OutboundData", MetricUnit::bytes, 1536);
  table.count("CachedCompile", 7);
  table.count("CachedCompile");
  EXPECT_EQ(table.report(),
            "Metric: CompileTime\n"
            "  TotalSamples: 100\n"
            "  Accumulator: 5.05 s\n"
            "  Percentiles: 1%=2 ms; 5%=6 ms; 10%=11 ms; 20%=21 ms; 50%=51 ms; 80%=80 ms; "
            "90%=90 ms; 95%=95 ms; 99%=99 ms\n"
            "Metric: OutboundData\n"
            "  TotalSamples: 1\n"
            "  Accumulator: 1.5 KiB\n"
            "  Percentiles: 1%=1.5 KiB; 5%=1.5 KiB; 10%=1.5 KiB; 20%=1.5 KiB; 50%=1.5 KiB; "
            "80%=1.5 KiB; 90%=1.5 KiB; 95%=1.5 KiB; 99%=1.5 KiB\n"
            "Counter: CachedCompile\n"
            "  Value: 8\n");
}

TEST(MetricsTable, KeepsTheNewestSamplesAndTheTotalOfAll) {
  MetricData data;
  const std::size_t count = MetricData::kSamplesKept + 10;
  for (std::size_t i = 0; i < count; ++i) data.add(static_cast<double>(i));
  EXPECT_EQ(data.count, count);
  EXPECT_EQ(data.last.size(), MetricData::kSamplesKept);
  EXPECT_EQ(*std::min_element(data.last.begin(), data.last.end()), 10);
  EXPECT_EQ(data.total, static_cast<double>(count * (count - 1)) / 2);
}

TEST(MetricsTable, SaysWhatToChange) {
  MetricsTable table;
  table.count("MarkStep", 20);
  table.count("UncachedCompile", 9);
  for (int i = 0; i < 10; ++i) table.forced_read("train.cpp:41");
  EXPECT_TRUE(table.analysis().empty());
  table.count("UncachedCompile", 2);
  table.forced_read("train.cpp:41");
  const std::vector<std::string> lines = table.analysis();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_NE(lines[0].find("11 programs were compiled in 20 steps"), std::string::npos);
  EXPECT_NE(lines[1].find("read 11 times in 20 steps at train.cpp:41"), std::string::npos);
  EXPECT_TRUE(table.report().starts_with("Analysis: 11 programs"));
}

TEST_F(MetricsTest, CountsStepsTensorsAndForcedReads) {
  const Tensor y = f32({1, 2}, {2}) * 2 + 1;
  EXPECT_EQ(sum(y).item(), 8);
  sync();
  sync();
  EXPECT_EQ(counter_value("MarkStep"), 2U);
  EXPECT_EQ(counter_value("CreateXlaTensor"), 3U);
  EXPECT_EQ(counter_value("none"), 0U);
  EXPECT_NE(metrics_report().find("Counter: ForcedRead at metrics_test.cpp:"), std::string::npos);
  EXPECT_EQ(metric_data("CompileTime").count, 0U);
}

TEST(Metrics, BelongToALoop) {
  expect_error(Errc::not_found, {"tensor ops work only in a training loop", "metrics_test.cpp:"},
               [] { metrics_report(); });
}

}  // namespace
}  // namespace weft::metrics_test
