#pragma once
/// TextReader: tokens of the program text, with the place of each for messages.

#include <cstdint>
#include <string>
#include <string_view>

#include <weft/error.hpp>

namespace weft {

/// Reads forward over a text that must outlive it. Skips white space before every token. Comments
/// aren't skipped: the parser reads them, since they carry locations.
class TextReader {
 public:
  explicit TextReader(std::string_view text) : text_(text) {}

  /// Offset of the next token.
  std::size_t place();
  bool at_end() { return place() == text_.size(); }
  /// Takes `token` if it comes next.
  bool accept(std::string_view token);
  void expect(std::string_view token);
  /// Letters, digits and '_'; at least one.
  std::string_view word();
  /// The characters up to white space or one of ",]}": a number in any form.
  std::string_view number();
  std::int64_t integer();
  /// The bits of a finite number, as f64.
  std::int64_t f64_bits();
  /// An integer of 32 bits.
  std::int32_t small_integer();
  /// One of the enumerators 0..last, by the name that to_string gives it; `what` names the enum.
  template <typename Enum>
  Enum enumerator(Enum last, std::string_view what) {
    const std::size_t begin = place();
    const std::string_view name = word();
    for (int i = 0; i <= static_cast<int>(last); ++i) {
      if (to_string(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
    }
    fail_at(begin, "'{}' is no {}", name, what);
  }
  /// "..." with \" \\ and \xNN.
  std::string string();
  /// The rest of the line after `// `, if that comes next on this line; "" otherwise.
  std::string_view line_comment();

  /// Throws invalid_argument "program text, line 3, column 7: ...".
  template <typename... Args>
  [[noreturn]] void fail_at(std::size_t place, fmt::format_string<Args...> format,
                            Args&&... args) const {
    fail_with(place, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  [[noreturn]] void fail_with(std::size_t place, const std::string& message) const;
  /// The next token in quotes, for messages.
  std::string found();

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace weft
