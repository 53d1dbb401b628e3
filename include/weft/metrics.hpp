#pragma once
/// What a worker's tensors cost, under torch_xla's names (torch_xla.debug.metrics): how often
/// programs were compiled and run, what was moved, and what in the loop makes it slow.

#include <cstddef>
#include <cstdint>
#include <map>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

enum class MetricUnit : std::uint8_t { seconds, bytes };

/// Samples of one metric.
struct MetricData {
  MetricUnit unit = MetricUnit::seconds;
  std::uint64_t count = 0;
  double total = 0;
  std::vector<double> last;  ///< the newest kSamplesKept, in no order

  static constexpr std::size_t kSamplesKept = 1024;
  void add(double value);
};

/// One for each runtime; used by its loop's thread.
class MetricsTable {
 public:
  void count(std::string_view name, std::uint64_t by = 1);
  void sample(std::string_view name, MetricUnit unit, double value);
  /// Put in place what was counted or measured elsewhere.
  void set(std::string_view name, std::uint64_t count);
  void set(std::string_view name, MetricData data);
  /// A value that the loop had to wait for, and where.
  void forced_read(const std::string& file_line) { ++forced_reads_[file_line]; }

  const std::map<std::string, std::uint64_t, std::less<>>& counters() const { return counters_; }
  const std::map<std::string, MetricData, std::less<>>& metrics() const { return metrics_; }
  /// The analysis, then every metric and counter.
  std::string report() const;
  /// What to change in the loop, a line each; none where all is well.
  std::vector<std::string> analysis() const;

 private:
  std::map<std::string, std::uint64_t, std::less<>> counters_;
  std::map<std::string, MetricData, std::less<>> metrics_;
  std::map<std::string, std::uint64_t> forced_reads_;
};

// Of the calling thread's loop; each throws not_found outside of one.

/// torch_xla's metrics_report().
std::string metrics_report(std::source_location loc = std::source_location::current());
/// 0 for a counter that hasn't counted.
std::uint64_t counter_value(std::string_view name,
                            std::source_location loc = std::source_location::current());
/// Without samples for a metric that has none.
MetricData metric_data(std::string_view name,
                       std::source_location loc = std::source_location::current());
std::vector<std::string> counter_names(std::source_location loc = std::source_location::current());
std::vector<std::string> metric_names(std::source_location loc = std::source_location::current());

}  // namespace weft
