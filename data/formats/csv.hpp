#pragma once
/// Reads CSV as RFC 4180 defines it:
///
///   file   = [UTF-8's byte order mark] record*
///   record = cell (separator cell)* (LF | CR LF | end)
///   cell   = text without separator and line end | '"' (character | '""')* '"'
///
/// Empty lines aren't records. If a cell doesn't begin with a quote, quotes in it are normal
/// characters.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace weft {

/// The maximum size of a record in bytes.
inline constexpr std::uint64_t kCsvRecordBytesMax = std::uint64_t{1} << 20;

/// Returns the offset at which a file's text begins: behind UTF-8's byte order mark if the file
/// begins with it, else 0. `first` has the file's first bytes.
std::uint64_t csv_text_begin(std::string_view first);

/// Finds where records begin in a file that is passed in pieces.
class CsvScanner {
 public:
  /// `begin` is the offset of the first piece in the file.
  CsvScanner(char separator, std::uint64_t begin) : separator_(separator), at_(begin) {}

  /// Scans the next piece. Throws corrupt if a record is longer than kCsvRecordBytesMax, or if
  /// anything but a separator or the end of the line follows a closing quote.
  void add(std::string_view piece);
  /// Must be called at the end of the file. Returns the byte offsets of the records, and the end of
  /// the last record. Throws corrupt if the file ends within quotes.
  std::vector<std::uint64_t> finish();

 private:
  enum class State : std::uint8_t { line_begin, cell_begin, plain, quoted, quote };

  void take(char character);
  [[noreturn]] void refuse(std::string_view what) const;

  const char separator_;
  State state_ = State::line_begin;
  bool after_return_ = false;  // whether the last character was CR
  std::uint64_t at_;
  std::uint64_t record_ = 0;  // offset of the current record
  std::vector<std::uint64_t> begins_;
};

/// Splits the record at the beginning of `text`, and writes its cells, without quotes, to `cells`.
/// Modifies `text`, because the cells refer to it. Throws corrupt for everything that CsvScanner
/// refuses.
void split_csv_record(std::span<char> text, char separator, std::vector<std::string_view>& cells);

}  // namespace weft
