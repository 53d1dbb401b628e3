#include "data/files/utf8.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace weft {

Character first_character(std::string_view text) noexcept {
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return {.point = byte(0), .bytes = 1};
  const std::size_t bytes = byte(0) < 0xc0 ? 0 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
  if (bytes == 0 || byte(0) >= 0xf8 || bytes > text.size()) return {};
  char32_t point = byte(0) & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return {};
    point = point << 6U | (byte(i) & 0x3fU);
  }
  const bool surrogate = point >= 0xd800 && point < 0xe000;
  if (point < kSmallest[bytes] || point > 0x10ffff || surrogate) return {};
  return {.point = point, .bytes = bytes};
}

std::string as_utf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const std::size_t bytes = first_character(text).bytes;
    const std::string_view taken = text.substr(0, std::max<std::size_t>(bytes, 1));
    if (bytes != 0) {
      valid += taken;
    } else {
      valid += fmt::format("\\x{:02x}", static_cast<unsigned char>(taken.front()));
    }
    text.remove_prefix(taken.size());
  }
  return valid;
}

std::string visible(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const auto [point, bytes] = first_character(text);
    const bool control = point < 0x20 || (point >= 0x7f && point < 0xa0);
    const std::string_view taken = text.substr(0, std::max<std::size_t>(bytes, 1));
    if (bytes != 0 && !control) {
      shown += taken;
    } else {
      for (const char c : taken) shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    text.remove_prefix(taken.size());
  }
  return shown;
}

}  // namespace weft
