#pragma once
/// UTF-8 checks for foreign text: a file, shared memory or an exception may contain any bytes, but
/// JSON takes UTF-8 only.

#include <cstddef>
#include <string>
#include <string_view>

namespace weft {

struct Character {
  char32_t point = 0;
  std::size_t bytes = 0;  ///< 0: not UTF-8
};

/// Decodes the beginning of a text that isn't empty. Overlong forms and surrogates aren't UTF-8.
Character first_character(std::string_view text) noexcept;

/// The text with every byte that isn't UTF-8 written as \x9b.
std::string as_utf8(std::string_view text);

/// The text with every control character, and every byte that isn't UTF-8, written as \x1b: what
/// comes from a file or from shared memory can't move the cursor or forge a line.
std::string visible(std::string_view text);

}  // namespace weft
