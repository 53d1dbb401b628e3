#pragma once
/// What a benchmark measured, as a table for people and as JSON for programs.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace weft::bench {

struct TableRow {
  std::string name{};
  std::vector<double> samples{};  ///< one at least
  std::string unit{};
  std::optional<double> ratio{};  ///< to what the table's heading says
};

/// Prints median, min, max and ratio of each row; `ratio` is the heading of the last column.
void print_table(const std::string& title, const std::string& ratio,
                 std::span<const TableRow> rows);
/// The row of this name, to which samples are added.
TableRow& row_of(std::vector<TableRow>& rows, const std::string& name, const std::string& unit);
/// The median of the samples' ratios to those of `base`, which were taken beside them, one by one.
double paired_ratio(const TableRow& row, const TableRow& base);
nlohmann::json to_json(std::span<const TableRow> rows);

}  // namespace weft::bench
