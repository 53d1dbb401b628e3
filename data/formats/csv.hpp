#pragma once
/// CSV as RFC 4180 has it:
///
///   file   = [UTF-8's mark] record*
///   record = cell (separator cell)* (LF | CR LF | end)
///   cell   = text without separator and line end | '"' (character | '""')* '"'
///
/// Empty lines are no records. A quote within a cell that doesn't begin with one is a character
/// like others.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace weft {

/// The maximum of a record.
inline constexpr std::uint64_t kCsvRecordBytesMax = std::uint64_t{1} << 20;

/// Where the text begins in a file of these first bytes.
std::uint64_t csv_text_begin(std::string_view first);

/// Finds where records begin in a file that comes in pieces.
class CsvScanner {
 public:
  /// `begin` is the offset of the first piece.
  CsvScanner(char separator, std::uint64_t begin) : separator_(separator), at_(begin) {}

  /// Throws corrupt for a record beyond its maximum, and for anything but a separator or a line's
  /// end behind a closing quote.
  void add(std::string_view piece);
  /// At the file's end. Throws corrupt within quotes. The beginnings of the records, in bytes, and
  /// the end of the last one.
  std::vector<std::uint64_t> finish();

 private:
  enum class State : std::uint8_t { line_begin, cell_begin, plain, quoted, quote };

  void take(char character);
  [[noreturn]] void refuse(std::string_view what) const;

  const char separator_;
  State state_ = State::line_begin;
  bool after_return_ = false;  // the last character was CR
  std::uint64_t at_;
  std::uint64_t record_ = 0;  // where the current one begins
  std::vector<std::uint64_t> begins_;
};

/// The cells of the record that `text` begins with, without quotes. `text` is changed, and the
/// cells lie in it. `cells` is overwritten. Throws corrupt for what CsvScanner refuses.
void split_csv_record(std::span<char> text, char separator, std::vector<std::string_view>& cells);

}  // namespace weft
