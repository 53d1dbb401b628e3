#pragma once
/// Choice: an option that is one value of an enum, and never text.

#include <concepts>
#include <string_view>

namespace weft {

/// Stands in the compiler's message where an option is given as text, such as "group" in place of
/// Restart::group.
template <typename Enum>
struct write_an_enumerator_instead_of_text;

/// A value of `Enum`. Text is refused when the program is compiled; text from outside the program,
/// such as a flag or a JSON file, is read by the enum's parse function.
template <typename Enum>
class Choice {
 public:
  constexpr Choice(Enum value) : value_(value) {}  // NOLINT(google-explicit-constructor)
  template <std::convertible_to<std::string_view> Text>
  Choice(const Text&, write_an_enumerator_instead_of_text<Enum>* = nullptr) = delete;

  constexpr operator Enum() const { return value_; }  // NOLINT(google-explicit-constructor)

 private:
  Enum value_;
};

}  // namespace weft
