#pragma once
/// What tokenizer.json calls "normalizer".

#include <functional>
#include <string>
#include <string_view>

#include "transport/text/json_view.hpp"
#include "transport/text/unicode.hpp"

namespace weft {

/// A part of a text, in UTF-8.
struct Word {
  std::string text{};
  bool is_first = false;  ///< it begins where the whole text begins
};

/// Changes a word. If nothing remains of its beginning it isn't the first any more. For any thread.
using TextNormalizer = std::function<void(Word& word)>;

/// Of null: one that changes nothing. Throws corrupt and version.
TextNormalizer read_text_normalizer(const JsonView& json);

/// "pattern": {"String": "a"} or {"Regex": "a+"}.
TextPattern read_text_pattern(const JsonView& json);

/// Each byte as the printable character that GPT-2 writes for it.
std::string to_byte_letters(std::string_view bytes);
/// And back: appends the byte of a character, or returns false for one that is none's.
bool append_byte_of_letter(std::string& bytes, char32_t letter);

}  // namespace weft
