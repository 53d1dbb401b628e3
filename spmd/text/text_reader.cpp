#include "spmd/text/text_reader.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

namespace weft {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

std::size_t TextReader::place() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  return at_;
}

bool TextReader::accept(std::string_view token) {
  if (!text_.substr(place()).starts_with(token)) return false;
  // A token such as "dim" must not match the beginning of a word such as "dims".
  const std::size_t end = at_ + token.size();
  if (is_word(token.back()) && end < text_.size() && is_word(text_[end])) return false;
  at_ = end;
  return true;
}

void TextReader::expect(std::string_view token) {
  if (!accept(token)) fail_at(at_, "expected '{}', found {}", token, found());
}

std::string_view TextReader::word() {
  const std::size_t begin = place();
  while (at_ < text_.size() && is_word(text_[at_])) ++at_;
  if (at_ == begin) fail_at(begin, "expected a name, found {}", found());
  return text_.substr(begin, at_ - begin);
}

std::string_view TextReader::number() {
  const std::size_t begin = place();
  const auto ends = [](char c) { return is_space(c) || c == ',' || c == ']' || c == '}'; };
  while (at_ < text_.size() && !ends(text_[at_])) ++at_;
  if (at_ == begin) fail_at(begin, "expected a number, found {}", found());
  return text_.substr(begin, at_ - begin);
}

std::int64_t TextReader::f64_bits() {
  const std::size_t begin = place();
  const std::string_view text = number();
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || last != end || !std::isfinite(value)) {
    fail_at(begin, "'{}' isn't a finite number", text);
  }
  return std::bit_cast<std::int64_t>(value);
}

std::int64_t TextReader::integer() {
  const std::size_t begin = place();
  std::int64_t value = 0;
  const char* const first = text_.data() + begin;
  const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
  if (error != std::errc()) fail_at(begin, "expected an integer, found {}", found());
  at_ = begin + static_cast<std::size_t>(end - first);
  return value;
}

std::int32_t TextReader::small_integer() {
  const std::size_t begin = place();
  const std::int64_t value = integer();
  if (value != static_cast<std::int32_t>(value)) fail_at(begin, "{} is out of range", value);
  return static_cast<std::int32_t>(value);
}

std::string TextReader::string() {
  const std::size_t begin = place();
  expect("\"");
  std::string result;
  while (at_ < text_.size() && text_[at_] != '"') {
    char c = text_[at_++];
    if (c == '\\' && at_ < text_.size()) {
      c = text_[at_++];
      if (c == 'x') {
        const std::string_view digits = text_.substr(at_, 2);
        unsigned code = 0;
        const auto [end, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
        if (error != std::errc() || end != digits.data() + 2) {
          fail_at(at_, "\\x needs two hexadecimal digits");
        }
        c = static_cast<char>(code);
        at_ += 2;
      }
    }
    result += c;
  }
  if (at_ == text_.size()) fail_at(begin, "the string has no closing quote");
  ++at_;
  return result;
}

std::string_view TextReader::line_comment() {
  std::size_t begin = at_;
  while (begin < text_.size() && (text_[begin] == ' ' || text_[begin] == '\t')) ++begin;
  if (!text_.substr(begin).starts_with("//")) return {};
  begin += text_.substr(begin + 2).starts_with(' ') ? 3 : 2;
  at_ = std::min(text_.find('\n', begin), text_.size());
  return text_.substr(begin, at_ - begin);
}

void TextReader::fail_with(std::size_t place, const std::string& message) const {
  const std::string_view before = text_.substr(0, place);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t column = place - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  fail(Errc::invalid_argument, "program text, line {}, column {}: {}", line, column, message);
}

std::string TextReader::found() {
  if (at_end()) return "the end of the text";
  std::size_t end = at_ + 1;
  if (is_word(text_[at_])) {
    while (end < text_.size() && is_word(text_[end]) && end - at_ < 40) ++end;
  }
  return fmt::format("'{}'", text_.substr(at_, end - at_));
}

}  // namespace weft
