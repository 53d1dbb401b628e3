#pragma once
/// Table: formats rows of cells for a terminal.

#include <string>
#include <string_view>
#include <vector>

namespace weft {

enum class Align { left, right };

/// A column; columns.hpp lists all of them.
struct Column {
  std::string_view heading;  ///< must outlive the table
  Align align = Align::left;
};

/// Rows under a heading. Every column is as wide as its widest cell. Cells are shown as visible()
/// returns them.
class Table {
 public:
  explicit Table(std::vector<Column> columns);

  bool empty() const { return rows_.empty(); }
  /// Adds a row with as many cells as there are columns.
  void add(const std::vector<std::string>& cells);
  /// Returns one line for the heading and one for each row.
  std::string to_string() const;
  /// Prints to stdout, with a bold heading if wants_colours().
  void print() const;

 private:
  std::string line(const std::vector<std::string>& cells) const;

  std::vector<Column> columns_;
  std::vector<std::size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace weft
