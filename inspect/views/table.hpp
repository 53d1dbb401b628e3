#pragma once
/// Tables for a terminal.

#include <string>
#include <string_view>
#include <vector>

namespace weft {

enum class Align { left, right };

struct Column {
  std::string heading;
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
  /// To stdout, where that is a terminal with the heading in bold.
  void print() const;

 private:
  std::string line(const std::vector<std::string>& cells) const;

  std::vector<Column> columns_;
  std::vector<std::size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace weft
