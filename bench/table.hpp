#pragma once
/// The results of a benchmark, as a table for people and as JSON for programs.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace weft::bench {

struct TableRow {
  std::string name{};
  std::vector<double> samples{};  ///< at least one
  std::string unit{};
  std::optional<double> ratio{};  ///< the table's heading says to what
};

/// Prints median, min, max and ratio of each row; `ratio` is the heading of the last column.
void print_table(const std::string& title, const std::string& ratio,
                 std::span<const TableRow> rows);
/// Returns the row of this name, to which samples are added; makes it if needed.
TableRow& row_of(std::vector<TableRow>& rows, const std::string& name, const std::string& unit);
/// Returns the median of the samples' ratios to those of `base`. The samples were taken in pairs.
double paired_ratio(const TableRow& row, const TableRow& base);
nlohmann::json to_json(std::span<const TableRow> rows);

}  // namespace weft::bench
