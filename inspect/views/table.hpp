#pragma once
/// Tables for a terminal.

#include <string>
#include <string_view>
#include <vector>

namespace weft {

enum class Align { left, right };

/// See columns.hpp for those that there are.
struct Column {
  std::string_view heading;  ///< lives as long as the table
  Align align = Align::left;
};

/// Rows under a heading, every column as wide as its widest cell. Cells are shown visible().
class Table {
 public:
  explicit Table(std::vector<Column> columns);

  bool empty() const { return rows_.empty(); }
  /// As many cells as there are columns.
  void add(const std::vector<std::string>& cells);
  /// A line each for the heading and the rows.
  std::string to_string() const;
  /// To stdout, with the heading in bold where wants_colours().
  void print() const;

 private:
  std::string line(const std::vector<std::string>& cells) const;

  std::vector<Column> columns_;
  std::vector<std::size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace weft
