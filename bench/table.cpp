#include "bench/table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/machine.hpp"

namespace weft::bench {
namespace {

/// Returns the number with four significant digits, or with all digits before the point if these
/// are more.
std::string text_of(double number) {
  const double magnitude = number == 0 ? 0 : std::floor(std::log10(std::abs(number)));
  return fmt::format("{:.{}f}", number, static_cast<int>(std::clamp(3 - magnitude, 0.0, 6.0)));
}

}  // namespace

void print_table(const std::string& title, const std::string& ratio,
                 std::span<const TableRow> rows) {
  fmt::print("\n{:<52}{:>10}{:>10}{:>10}  {:<10}{:>14}\n", title, "median", "min", "max", "unit",
             ratio);
  for (const TableRow& row : rows) {
    const auto [min, max] = std::ranges::minmax(row.samples);
    fmt::print("  {:<50}{:>10}{:>10}{:>10}  {:<10}{:>14}\n", row.name, text_of(median(row.samples)),
               text_of(min), text_of(max), row.unit,
               row.ratio ? fmt::format("{:.3f}", *row.ratio) : "");
  }
  std::fflush(stdout);
}

TableRow& row_of(std::vector<TableRow>& rows, const std::string& name, const std::string& unit) {
  const auto found = std::ranges::find(rows, name, &TableRow::name);
  if (found != rows.end()) return *found;
  return rows.emplace_back(TableRow{.name = name, .unit = unit});
}

double paired_ratio(const TableRow& row, const TableRow& base) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < row.samples.size(); ++i) {
    ratios.push_back(row.samples[i] / base.samples[i]);
  }
  return median(ratios);
}

nlohmann::json to_json(std::span<const TableRow> rows) {
  nlohmann::json all = nlohmann::json::array();
  for (const TableRow& row : rows) {
    all.push_back({{"name", row.name},
                   {"unit", row.unit},
                   {"summary", summarize(row.samples)},
                   {"ratio", row.ratio ? nlohmann::json(*row.ratio) : nlohmann::json()},
                   {"samples", row.samples}});
  }
  return all;
}

}  // namespace weft::bench
