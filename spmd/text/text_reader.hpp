#pragma once
/// TextReader: reads the tokens of the program text, and provides the place of each token for
/// messages.

#include <cstdint>
#include <string>
#include <string_view>

#include <weft/tensor/error.hpp>

namespace weft {

/// Reads a text, which must outlive the reader, from its beginning to its end. Skips white space
/// before every token, but not comments, because they contain locations, which the parser reads.
class TextReader {
 public:
  explicit TextReader(std::string_view text) : text_(text) {}

  /// Returns the offset of the next token.
  std::size_t place();
  bool at_end() { return place() == text_.size(); }
  /// Reads `token` if it comes next, and returns whether it did.
  bool accept(std::string_view token);
  void expect(std::string_view token);
  /// Reads a word: one or more letters, digits and '_'.
  std::string_view word();
  /// Reads a number in any form: all characters before white space or one of ",]}".
  std::string_view number();
  std::int64_t integer();
  /// Reads a finite number and returns its bits as f64.
  std::int64_t f64_bits();
  /// Reads an integer of 32 bits.
  std::int32_t small_integer();
  /// Reads one of the enumerators 0..last by the name that to_string gives it; `what` names the
  /// enum in errors.
  template <typename Enum>
  Enum enumerator(Enum last, std::string_view what) {
    const std::size_t begin = place();
    const std::string_view name = word();
    for (int i = 0; i <= static_cast<int>(last); ++i) {
      if (to_string(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
    }
    fail_at(begin, "'{}' isn't a known {}", name, what);
  }
  /// Reads a quoted string with the escapes \" \\ and \xNN.
  std::string string();
  /// Reads the rest of the line if `// ` comes next on the same line; otherwise returns "".
  std::string_view line_comment();

  /// Throws invalid_argument with a message such as "program text, line 3, column 7: ...".
  template <typename... Args>
  [[noreturn]] void fail_at(std::size_t place, fmt::format_string<Args...> format,
                            Args&&... args) const {
    fail_with(place, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  [[noreturn]] void fail_with(std::size_t place, const std::string& message) const;
  /// Returns the next token in quotes, for use in messages.
  std::string found();

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace weft
