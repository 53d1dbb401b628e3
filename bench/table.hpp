#pragma once
/// Writes the results of a benchmark as a table for people and as JSON for programs.

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
  std::optional<double> ratio{};  ///< the table's heading says to what this is a ratio
};

/// Prints the median, minimum, maximum and ratio of each row; `ratio` is the heading of the last
/// column.
void print_table(const std::string& title, const std::string& ratio,
                 std::span<const TableRow> rows);
/// Returns the row of this name, so that the caller can add samples; makes the row if it is
/// missing.
TableRow& row_of(std::vector<TableRow>& rows, const std::string& name, const std::string& unit);
/// Returns the median of the ratios of the samples to those of `base`. Sample i of `row` is paired
/// with sample i of `base`.
double paired_ratio(const TableRow& row, const TableRow& base);
nlohmann::json to_json(std::span<const TableRow> rows);

}  // namespace weft::bench
