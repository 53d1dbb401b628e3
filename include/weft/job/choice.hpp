#pragma once
/// Choice: an option whose value is an enumerator, and never text.

#include <concepts>
#include <string_view>

namespace weft {

/// If an option is given as text, such as "group" instead of Restart::group, the compiler's message
/// shows this name.
template <typename Enum>
struct write_an_enumerator_instead_of_text;

/// A value of `Enum`. The compiler refuses text. Convert text from outside the program, such as a
/// flag or a JSON file, with the enum's parse function.
template <typename Enum>
class Choice {
 public:
  constexpr Choice(Enum value) : value_(value) {}
  template <std::convertible_to<std::string_view> Text>
  Choice(const Text&, write_an_enumerator_instead_of_text<Enum>* = nullptr) = delete;

  constexpr operator Enum() const { return value_; }

 private:
  Enum value_;
};

}  // namespace weft
