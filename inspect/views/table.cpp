#include "inspect/views/table.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "data/files/utf8.hpp"
#include "inspect/views/colours.hpp"

namespace weft {
namespace {

/// Returns the width in columns of a text without control characters.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80; }));
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (const Column& column : columns_) widths_.push_back(width_of(column.heading));
}

void Table::add(const std::vector<std::string>& cells) {
  WEFT_CHECK(cells.size() == columns_.size(), cells.size(), columns_.size());
  std::vector<std::string>& row = rows_.emplace_back();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    row.push_back(visible(cells[i]));
    widths_[i] = std::max(widths_[i], width_of(row.back()));
  }
}

std::string Table::line(const std::vector<std::string>& cells) const {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string blanks(widths_[i] - width_of(cells[i]), ' ');
    if (i != 0) text += "  ";
    text += columns_[i].align == Align::left ? cells[i] + blanks : blanks + cells[i];
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string Table::to_string() const {
  std::vector<std::string> headings;
  for (const Column& column : columns_) headings.emplace_back(column.heading);
  std::string text = line(headings) + '\n';
  for (const auto& row : rows_) text += line(row) + '\n';
  return text;
}

void Table::print() const {
  std::string text = to_string();
  if (wants_colours()) {
    text.insert(text.find('\n'), kPlain);
    text.insert(0, kBold);
  }
  fmt::print("{}", text);
}

}  // namespace weft
