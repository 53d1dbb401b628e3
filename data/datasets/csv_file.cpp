#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/ranges.h>

#include <weft/data/files.hpp>
#include <weft/tensor/error.hpp>

#include "data/datasets/elements.hpp"
#include "data/datasets/number_text.hpp"
#include "data/datasets/text_lines.hpp"
#include "data/formats/csv.hpp"
#include "data/formats/in_quotes.hpp"
#include "data/items/fields.hpp"
#include "data/remote/input_file.hpp"
#include "spmd/program/element.hpp"

namespace weft {
namespace {

/// Stores the cell. Returns false if the cell isn't a number of the field's dtype.
bool store_cell(const CsvField& field, std::string_view cell, std::byte* out) {
  return store_number({field.dtype, field.scale, field.offset}, cell, out);
}

bool is_empty(std::string_view cell) { return cell.find_first_not_of(" \t") == cell.npos; }

class Csv : public Dataset {
 public:
  Csv(const std::string& path, const CsvOptions& options)
      : file_(path), fields_options_(options.fields), separator_(options.separator) {
    if (separator_ == '"' || separator_ == '\n' || separator_ == '\r') {
      fail(Errc::invalid_argument, "{}: separator = {:?}: expected another character", path,
           separator_);
    }
    of_file(path, [&] { find_records(); });
    std::vector<std::string> names;
    if (options.header) names = of_file(path, [&] { return read_names(); });
    for (const CsvField& field : fields_options_) add_field(field, names);
    check_fields(path, fields_);
  }

  std::string name() const override { return file_.path(); }
  std::int64_t size() const override { return static_cast<std::int64_t>(begins_.size()) - 1; }
  const std::vector<Field>& fields() const override { return fields_; }

 private:
  struct Record {
    std::vector<char> text;
    std::vector<std::string_view> cells;
  };

  void find_records() {
    const auto head = file_.head(4);
    const std::uint64_t begin =
        csv_text_begin({reinterpret_cast<const char*>(head.data()), head.size()});
    CsvScanner scanner(separator_, begin);
    file_.scan(begin, [&](std::span<const std::byte> piece) {
      scanner.add({reinterpret_cast<const char*>(piece.data()), piece.size()});
    });
    begins_ = scanner.finish();
    begins_.shrink_to_fit();
  }

  /// Reads the header and removes it from the list of records.
  std::vector<std::string> read_names() {
    if (begins_.size() < 2) fail(Errc::corrupt, "is empty: expected a header");
    const Record record = read_record(0);
    begins_.erase(begins_.begin());
    if (std::ranges::all_of(record.cells, [](std::string_view cell) { return is_number(cell); })) {
      fail(Errc::invalid_argument,
           "has only numbers in its first line, which is read as the header; if the file has no "
           "header, set .header = false");
    }
    return {record.cells.begin(), record.cells.end()};
  }

  void add_field(const CsvField& field, std::span<const std::string> names) {
    const auto refuse = [&](const std::string& what) {
      fail(Errc::invalid_argument, "{}: field '{}': {}", file_.path(), field.name, what);
    };
    try {
      check_scale(field.dtype, field.scale, field.offset);
    } catch (const Error& error) {
      refuse(error.what());
    }
    std::vector<std::size_t>& columns = columns_.emplace_back();
    Shape shape = field.item_shape;
    for (const std::string& column : field.columns) {
      const auto found = std::ranges::find(names, column);
      if (found == names.end()) {
        refuse(fmt::format("there is no column '{}'; the header has {}", column,
                           in_quotes(fmt::format("{}", fmt::join(names, ", ")))));
      }
      columns.push_back(static_cast<std::size_t>(found - names.begin()));
    }
    if (columns.empty()) {
      if (field.first_column < 0) refuse("first_column is less than 0");
      columns.resize(static_cast<std::size_t>(shape.num_elements()));
      for (std::size_t i = 0; i < columns.size(); ++i) {
        columns[i] = static_cast<std::size_t>(field.first_column) + i;
      }
    } else if (shape.size() == 0 && columns.size() > 1) {
      shape = {static_cast<std::int64_t>(columns.size())};
    }
    if (columns.empty() || columns.size() != static_cast<std::size_t>(shape.num_elements())) {
      refuse(fmt::format("item_shape ({}) has {} elements, but the number of columns is {}",
                         shape.to_string(), shape.num_elements(), columns.size()));
    }
    if (field.missing && !is_representable(field.dtype, *field.missing)) {
      refuse(fmt::format("missing = {}: expected a number that {} can represent", *field.missing,
                         to_string(field.dtype)));
    }
    fields_.push_back({field.name, {field.dtype, shape}});
  }

  Record read_record(std::size_t number) const {
    Record record;
    record.text.resize(begins_[number + 1] - begins_[number]);
    file_.read(begins_[number], std::as_writable_bytes(std::span(record.text)));
    split_csv_record(record.text, separator_, record.cells);
    return record;
  }

  void read_item(const Item& item, ItemMemory out) const override {
    const auto number = static_cast<std::size_t>(item.index);
    const Record record = read_record(number);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const CsvField& field = fields_options_[i];
      const auto bytes = static_cast<std::size_t>(byte_size(field.dtype));
      for (std::size_t j = 0; j < columns_[i].size(); ++j) {
        const std::size_t column = columns_[i][j];
        std::byte* const to = out[i].data() + j * bytes;
        if (column >= record.cells.size()) {
          fail(Errc::corrupt, "line {}: has {} cells; field '{}' needs the cell in column {}",
               line_of(number), record.cells.size(), field.name, column);
        }
        const std::string_view cell = record.cells[column];
        if (field.missing && is_empty(cell)) {
          store_element(field.dtype, *field.missing, to);
        } else if (!store_cell(field, cell, to)) {
          fail(Errc::corrupt, "line {}, column {}: {} isn't a valid {}, the dtype of field '{}'{}",
               line_of(number), column, in_quotes(cell), to_string(field.dtype), field.name,
               is_empty(cell) ? "; set .missing to the value of an empty cell" : "");
        }
      }
    }
  }

  std::size_t line_of(std::size_t number) const { return line_number(file_, begins_[number]); }

  const InputFile file_;
  const std::vector<CsvField> fields_options_;
  const char separator_;
  std::vector<std::uint64_t> begins_;              // offsets of the records, and the end
  std::vector<std::vector<std::size_t>> columns_;  // numbers of the columns of each field
  std::vector<Field> fields_;
};

}  // namespace

DatasetPtr csv_file(const std::string& path, const CsvOptions& options) {
  return std::make_shared<const Csv>(path, options);
}

}  // namespace weft
