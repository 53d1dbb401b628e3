#pragma once
/// Quotes text of a file in error messages.

#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace weft {

/// Returns the text in quotes, with unprintable bytes escaped. Cuts the text after 80 bytes, so
/// that a long text in a file doesn't make the message long.
inline std::string in_quotes(std::string_view text) {
  constexpr std::size_t kBytesMax = 80;
  return fmt::format("{:?}{}", text.substr(0, kBytesMax), text.size() > kBytesMax ? "..." : "");
}

}  // namespace weft
