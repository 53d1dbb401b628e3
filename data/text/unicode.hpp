#pragma once
/// Provides Unicode's properties, normal forms and regular expressions, with ICU. All texts are
/// UTF-8.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <weft/tensor/error.hpp>

#include "data/files/utf8.hpp"

namespace weft {

/// Throws invalid_argument with the place of the first byte that isn't UTF-8.
void check_utf8(std::string_view text);
/// Replaces every part that isn't UTF-8 by U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

void append_point(std::string& text, char32_t point);

/// Calls `take(point, bytes)` for each character; `bytes` is the character's part of the text.
template <typename Take>
void for_each_point(std::string_view text, Take take) {
  for (std::size_t at = 0; at < text.size();) {
    const Character character = first_character(text.substr(at));
    WEFT_CHECK(character.bytes != 0, at);
    take(character.point, text.substr(at, character.bytes));
    at += character.bytes;
  }
}

bool is_white_space(char32_t point);  ///< property White_Space
bool is_word_point(char32_t point);   ///< whether \w matches the character
bool is_mark(char32_t point);         ///< general category M
bool is_nonspacing_mark(char32_t point);
bool is_punctuation(char32_t point);  ///< general category P
bool is_numeric(char32_t point);      ///< general category N
bool is_other(char32_t point);        ///< whether it is control, format, private use or surrogate
/// Appends the lower case of one character, ignoring its neighbors in the text.
void append_lower(std::string& text, char32_t point);

enum class NormalForm : std::uint8_t { nfc, nfd, nfkc, nfkd };
std::string normalized(std::string_view text, NormalForm form);

/// A part of a text that is cut at the matches of a pattern.
struct CutPart {
  std::string_view text{};
  bool is_match = false;
};

/// A regular expression, or a text that is matched literally. It is immutable; any thread may use
/// it.
class TextPattern {
 public:
  static TextPattern literal(std::string text);
  /// Reads the expression like Oniguruma by default: ^ and $ match at the ends of lines, . doesn't
  /// match a line feed, and \s is the property White_Space. Throws corrupt for an expression that
  /// ICU refuses.
  static TextPattern regex(std::string_view expression);

  /// Calls `take` for all matches and for the parts between matches, in order. Throws corrupt if
  /// matching takes too many steps.
  void cut(std::string_view text, const std::function<void(const CutPart&)>& take) const;

 private:
  struct Regex;
  std::string literal_;
  std::shared_ptr<const Regex> regex_;  // null for a literal
};

}  // namespace weft
