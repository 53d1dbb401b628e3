#pragma once
/// PreTokenizer cuts a text into words, of which a model makes tokens (tokenizer.json's
/// "pre_tokenizer").

#include <functional>
#include <string>
#include <vector>

#include "data/text/json_view.hpp"
#include "data/text/text_normalizer.hpp"

namespace weft {

/// Cuts words into others, none of them empty. For any thread.
using PreTokenizer = std::function<void(std::vector<Word>& words)>;

/// Null is read as one that changes nothing. Throws corrupt and version.
PreTokenizer read_pre_tokenizer(const JsonView& json);

/// Metaspace puts its letter in front of no word, of the first one of a text, or of all.
enum class PrependScheme : std::uint8_t { never, first, always };
PrependScheme read_prepend_scheme(const JsonView& metaspace);

}  // namespace weft
