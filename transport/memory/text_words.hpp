#pragma once
/// Text in shared memory as an array of words, which readers and a writer may load and store one by
/// one while the other is at it: a torn text is a wrong text, never a data race.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace weft {

/// At most `bytes_max` bytes of the text, no UTF-8 character split.
std::string_view cut_text(std::string_view text, std::size_t bytes_max) noexcept;

/// Cut to fit, a zero behind it.
template <std::size_t N>
std::array<std::uint64_t, N> pack_text(std::string_view text) noexcept {
  std::array<std::uint64_t, N> words{};
  text = cut_text(text, sizeof(words) - 1);
  std::memcpy(words.data(), text.data(), text.size());
  return words;
}

template <std::size_t N>
std::string unpack_text(const std::array<std::uint64_t, N>& words) {
  const char* text = reinterpret_cast<const char*>(words.data());
  return {text, strnlen(text, sizeof(words))};
}

}  // namespace weft
