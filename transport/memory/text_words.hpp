#pragma once
/// TextWords: text in shared memory, as an array of atomic words. A reader that reads the text
/// while it is written gets a wrong text, but there is no data race.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace weft {

/// Returns the longest prefix of at most `bytes_max` bytes that doesn't split a UTF-8 character.
std::string_view cut_text(std::string_view text, std::size_t bytes_max) noexcept;

/// Packs the text into words. Cuts the text so that at least one zero byte remains at the end.
template <std::size_t N>
std::array<std::uint64_t, N> pack_text(std::string_view text) noexcept {
  std::array<std::uint64_t, N> words{};
  text = cut_text(text, sizeof(words) - 1);
  text.copy(reinterpret_cast<char*>(words.data()), text.size());
  return words;
}

template <std::size_t N>
std::string unpack_text(const std::array<std::uint64_t, N>& words) {
  const char* text = reinterpret_cast<const char*>(words.data());
  return {text, strnlen(text, sizeof(words))};
}

}  // namespace weft
