#include "transport/memory/text_words.hpp"

namespace weft {

std::string_view cut_text(std::string_view text, std::size_t bytes_max) noexcept {
  if (text.size() <= bytes_max) return text;
  while (bytes_max > 0 && (static_cast<unsigned char>(text[bytes_max]) & 0xC0U) == 0x80U)
    --bytes_max;
  return text.substr(0, bytes_max);
}

}  // namespace weft
