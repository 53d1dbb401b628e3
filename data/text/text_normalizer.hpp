#pragma once
/// TextNormalizer: changes a text before it is cut (tokenizer.json's "normalizer").

#include <functional>
#include <string>
#include <string_view>

#include "data/text/json_view.hpp"
#include "data/text/unicode.hpp"

namespace weft {

/// A part of a text, in UTF-8.
struct Word {
  std::string text{};
  bool is_first = false;  ///< whether the part begins the whole text
};

/// A function that changes a word. If it removes the word's beginning, `is_first` becomes false.
/// Any thread may call it.
using TextNormalizer = std::function<void(Word& word)>;

/// Reads a normalizer. For JSON null, returns one that changes nothing. Throws corrupt and version.
TextNormalizer read_text_normalizer(const JsonView& json);

/// Reads a pattern such as {"String": "a"} or {"Regex": "a+"}, the value of "pattern".
TextPattern read_text_pattern(const JsonView& json);

/// Returns each byte as the printable character that GPT-2 uses for it.
std::string to_byte_letters(std::string_view bytes);
/// Appends the byte for which a character stands. Returns false if it doesn't stand for a byte.
bool append_byte_of_letter(std::string& bytes, char32_t letter);

}  // namespace weft
