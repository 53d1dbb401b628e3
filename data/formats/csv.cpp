#include "data/formats/csv.hpp"

#include <weft/tensor/error.hpp>

namespace weft {

std::uint64_t csv_text_begin(std::string_view first) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  return first.starts_with(kMark) ? kMark.size() : 0;
}

void CsvScanner::refuse(std::string_view what) const {
  fail(Errc::corrupt, "CSV: record {}, at byte {}: {}", begins_.size(), at_, what);
}

void CsvScanner::add(std::string_view piece) {
  for (const char character : piece) {
    take(character);
    ++at_;
  }
}

void CsvScanner::take(char character) {
  const bool line_end = character == '\n';
  if (state_ == State::line_begin) {
    if (line_end || character == '\r') return;  // an empty line
    record_ = at_;
    begins_.push_back(record_);
    state_ = State::cell_begin;
  }
  if (at_ - record_ >= kCsvRecordBytesMax) {
    refuse(fmt::format("it has more than {} bytes; is a quote missing?", kCsvRecordBytesMax));
  }
  switch (state_) {
    case State::quoted:
      if (character == '"') state_ = State::quote;
      return;
    case State::quote:
      if (character == '"' && !after_return_) {
        state_ = State::quoted;
        return;
      }
      if (character == '\r' && !after_return_) {
        after_return_ = true;
        return;
      }
      if (!line_end && (character != separator_ || after_return_)) {
        refuse("expected a separator or the end of the line after the closing quote");
      }
      after_return_ = false;
      break;
    default: break;
  }
  if (line_end) {
    state_ = State::line_begin;
  } else if (character == separator_) {
    state_ = State::cell_begin;
  } else if (state_ == State::cell_begin && character == '"') {
    state_ = State::quoted;
  } else {
    state_ = State::plain;
  }
}

std::vector<std::uint64_t> CsvScanner::finish() {
  if (state_ == State::quoted) refuse("the file ends within quotes");
  begins_.push_back(at_);
  return std::move(begins_);
}

void split_csv_record(std::span<char> text, char separator, std::vector<std::string_view>& cells) {
  cells.clear();
  std::size_t at = 0;
  // Returns whether the record ends at `at`; if so, moves past the end of the line.
  const auto at_end = [&] {
    return at == text.size() || text[at] == '\n' ||
           (text[at] == '\r' && (at + 1 == text.size() || text[at + 1] == '\n'));
  };
  for (;;) {
    std::size_t begin = at;
    std::size_t end = at;
    if (at < text.size() && text[at] == '"') {
      begin = end = ++at;
      for (;; ++at, ++end) {
        if (at == text.size()) fail(Errc::corrupt, "CSV: the record ends within quotes");
        if (text[at] == '"' && (at + 1 == text.size() || text[++at] != '"')) break;
        text[end] = text[at];
      }
      if (at + 1 == text.size() && text[at] == '"') ++at;
      if (!at_end() && text[at] != separator) {
        fail(Errc::corrupt,
             "CSV: cell {}: expected a separator or the end of the line after the closing quote",
             cells.size());
      }
    } else {
      while (!at_end() && text[at] != separator) ++at;
      end = at;
    }
    cells.emplace_back(text.data() + begin, end - begin);
    if (at_end()) return;
    ++at;
  }
}

}  // namespace weft
