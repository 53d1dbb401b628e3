#include "inspect/snapshot/progress_file.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include <weft/tensor/error.hpp>

#include "data/formats/csv.hpp"

namespace weft {
namespace {

/// The number of bytes that are read at the end of the file. They contain some rows, even if there
/// are many columns.
constexpr std::streamoff kTailBytes = 65536;

std::optional<double> number_in(std::string_view cell) {
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (cell.empty() || error != std::errc() || end != cell.data() + cell.size()) return {};
  return value;
}

/// Returns the last number of each column. Throws corrupt for text that isn't CSV.
std::vector<ReportedMetric> metrics_in(const std::string& csv) {
  CsvScanner scanner(',', 0);
  scanner.add(csv);
  const std::vector<std::uint64_t> begins = scanner.finish();
  if (begins.size() < 3) return {};
  std::string text = csv;
  std::vector<std::string_view> cells;
  const auto split = [&](std::size_t record) {
    split_csv_record(std::span(text).subspan(begins[record], begins[record + 1] - begins[record]),
                     ',', cells);
  };
  split(0);
  const std::vector<std::string> names(cells.begin(), cells.end());
  std::vector<std::optional<double>> values(names.size());
  // The search goes back from the last row until every column has a number.
  for (std::size_t record = begins.size() - 2; record > 0; --record) {
    split(record);
    for (std::size_t i = 0; i < std::min(names.size(), cells.size()); ++i) {
      if (!values[i]) values[i] = number_in(cells[i]);
    }
    if (std::ranges::all_of(values, [](const auto& value) { return value.has_value(); })) break;
  }
  std::vector<ReportedMetric> metrics;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (values[i]) metrics.push_back({names[i], *values[i]});
  }
  return metrics;
}

}  // namespace

std::string head_and_tail(const std::string& path, std::streamoff bytes) {
  // Only a regular file is opened: to open a FIFO would wait for its writer.
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return {};
  std::ifstream in(path, std::ios::binary);
  std::string text;
  if (!std::getline(in, text)) return {};
  text += '\n';
  const auto begin = in.tellg();
  in.seekg(0, std::ios::end);
  const auto size = in.tellg();
  in.seekg(std::max<std::streamoff>(begin, size - std::streampos(bytes)));
  std::ostringstream rest;
  rest << in.rdbuf();
  std::string tail = rest.str();
  if (size - begin > bytes) tail.erase(0, std::min(tail.find('\n'), tail.size() - 1) + 1);
  return text + tail;
}

std::vector<ReportedMetric> last_metrics(std::string csv) {
  csv.resize(csv.rfind('\n') + 1);  // without a newline, npos + 1 is 0
  try {
    return metrics_in(csv);
  } catch (const Error&) {
    return {};
  }
}

std::vector<ReportedMetric> read_last_metrics(const std::string& run_dir) {
  return last_metrics(head_and_tail(run_dir + "/progress.csv", kTailBytes));
}

std::optional<double> loss_of(std::span<const ReportedMetric> metrics) {
  auto found = std::ranges::find(metrics, "loss", &ReportedMetric::name);
  if (found == metrics.end()) {
    found = std::ranges::find_if(
        metrics, [](const ReportedMetric& metric) { return metric.name.ends_with("loss"); });
  }
  if (found == metrics.end()) return {};
  return found->value;
}

}  // namespace weft
