#pragma once
/// Text for a terminal: tables, and what others wrote made harmless.

#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// The text with every control character, and every byte that isn't UTF-8, written as \x1b: what
/// comes from a file or from shared memory can't move the cursor or forge a line.
std::string visible(std::string_view text);

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
