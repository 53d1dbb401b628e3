#include "inspect/page/curves.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "data/formats/csv.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kPointsMax = 1000;
constexpr std::size_t kRatesMax = 200;
constexpr std::size_t kColumnsMax = 64;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double number_in(std::string_view cell) {
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  const bool whole = error == std::errc() && end == cell.data() + cell.size();
  return whole && std::isfinite(value) ? value : kNone;
}

struct ProgressColumn {
  std::string name;
  std::vector<double> values;  ///< NaN where the cell has no number
};

/// Returns the columns of a CSV file. If there are too many rows for the page, keeps only every
/// n-th row. Ignores an incomplete last row. Throws corrupt.
std::vector<ProgressColumn> read_columns(std::string& csv) {
  csv.resize(csv.rfind('\n') + 1);  // without a newline, npos + 1 is 0
  CsvScanner scanner(',', 0);
  scanner.add(csv);
  const std::vector<std::uint64_t> begins = scanner.finish();
  if (begins.size() < 3) return {};
  const std::size_t rows = begins.size() - 2;
  std::vector<std::string_view> cells;
  const auto split = [&](std::size_t record) {
    const auto text = std::span(csv).subspan(begins[record], begins[record + 1] - begins[record]);
    split_csv_record(text, ',', cells);
  };
  split(0);
  std::vector<ProgressColumn> columns;
  for (const std::string_view name : std::span(cells).first(std::min(cells.size(), kColumnsMax))) {
    columns.push_back({.name = std::string(name), .values = {}});
  }
  const std::size_t stride = (rows + kPointsMax - 1) / kPointsMax;
  for (std::size_t row = (rows - 1) % stride; row < rows; row += stride) {
    split(row + 1);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      columns[i].values.push_back(i < cells.size() ? number_in(cells[i]) : kNone);
    }
  }
  std::erase_if(columns, [](const ProgressColumn& column) {
    return std::ranges::all_of(column.values, [](double value) { return std::isnan(value); });
  });
  return columns;
}

Json with_nulls(const std::vector<double>& values) {
  Json json = Json::array();
  for (const double value : values) json.push_back(std::isnan(value) ? Json() : Json(value));
  return json;
}

/// Adds curves of the reported numbers. Their x values come from the column "step" if there is one,
/// and otherwise from the rows' numbers.
void add_reports(std::string& csv, Json& json) {
  json["x"] = Json::array();
  json["columns"] = Json::array();
  std::vector<ProgressColumn> columns;
  try {
    columns = read_columns(csv);
  } catch (const Error&) {
    return;
  }
  if (columns.empty()) return;
  const auto step = std::ranges::find(columns, "step", &ProgressColumn::name);
  for (std::size_t i = 0; i < columns.front().values.size(); ++i) {
    json["x"].push_back(static_cast<double>(i));
  }
  if (step != columns.end()) json["x"] = with_nulls(step->values);
  for (const ProgressColumn& column : columns) {
    if (column.name == "step") continue;
    json["columns"].push_back({{"name", column.name}, {"values", with_nulls(column.values)}});
  }
}

/// Returns the steps per second of the first chip that has steps. If there are too many steps for
/// the page, each point stands for several steps.
Json rates_of(const Snapshot& job) {
  Json rate{{"x", Json::array()}, {"values", Json::array()}};
  for (const EventRing& ring : job.rings) {
    if (ring.kind != RingKind::chip) continue;
    std::vector<const Event*> steps;
    for (const Event& event : ring.events) {
      if (event.kind == EventKind::step) steps.push_back(&event);
    }
    if (steps.size() < 2) continue;
    const std::size_t stride = (steps.size() - 1 + kRatesMax - 1) / kRatesMax;
    for (std::size_t i = stride; i < steps.size(); i += stride) {
      const Event& from = *steps[i - stride];
      const Event& to = *steps[i];
      if (to.at_ns <= from.at_ns || to.number <= from.number) continue;
      rate["x"].push_back(to.number);
      rate["values"].push_back(static_cast<double>(to.number - from.number) * 1e9 /
                               static_cast<double>(to.at_ns - from.at_ns));
    }
    break;
  }
  return rate;
}

}  // namespace

std::string curves_json(const Snapshot& job, std::string progress_csv) {
  Json json{{"schema", "weft.curves/1"}, {"rate", rates_of(job)}};
  add_reports(progress_csv, json);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace weft
