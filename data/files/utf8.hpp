#pragma once
/// Checks whether foreign text is UTF-8, and escapes it. A file, shared memory or an exception may
/// contain any bytes, but JSON accepts only UTF-8.

#include <cstddef>
#include <string>
#include <string_view>

namespace weft {

struct Character {
  char32_t point = 0;
  std::size_t bytes = 0;  ///< 0 if the text isn't UTF-8
};

/// Decodes the first character of a text, which must not be empty. Overlong forms and surrogates
/// aren't UTF-8.
Character first_character(std::string_view text) noexcept;

/// Returns the text with every byte that isn't UTF-8 replaced by an escape such as \x9b.
std::string as_utf8(std::string_view text);

/// Returns the text with every control character, and every byte that isn't UTF-8, replaced by an
/// escape such as \x1b. So text from a file or from shared memory can't move the cursor of a
/// terminal or forge a line of a log.
std::string visible(std::string_view text);

}  // namespace weft
