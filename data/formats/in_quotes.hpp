#pragma once
/// Text of a file for the message of an error.

#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace weft {

/// The text in quotes, its unprintable bytes escaped. What is longer than 80 bytes is cut there, so
/// that a file can't make a message as long as itself.
inline std::string in_quotes(std::string_view text) {
  constexpr std::size_t kBytesMax = 80;
  return fmt::format("{:?}{}", text.substr(0, kBytesMax), text.size() > kBytesMax ? "..." : "");
}

}  // namespace weft
