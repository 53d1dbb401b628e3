#pragma once
/// PreTokenizer: cuts a text into words, which a model turns into tokens (tokenizer.json's
/// "pre_tokenizer").

#include <functional>
#include <string>
#include <vector>

#include "data/text/json_view.hpp"
#include "data/text/text_normalizer.hpp"

namespace weft {

/// A function that cuts words into smaller words, none of them empty. Any thread may call it.
using PreTokenizer = std::function<void(std::vector<Word>& words)>;

/// Reads a pre-tokenizer. For JSON null, returns one that changes nothing. Throws corrupt and
/// version.
PreTokenizer read_pre_tokenizer(const JsonView& json);

/// Says before which words Metaspace puts its replacement letter: no word, the first word of a
/// text, or all words.
enum class PrependScheme : std::uint8_t { never, first, always };
PrependScheme read_prepend_scheme(const JsonView& metaspace);

}  // namespace weft
