#pragma once
/// What tokenizer.json calls "pre_tokenizer": it cuts a text into the words that a model makes
/// tokens of.

#include <functional>
#include <string>
#include <vector>

#include "transport/text/json_view.hpp"
#include "transport/text/text_normalizer.hpp"

namespace weft {

/// Cuts words into others, none of them empty. For any thread.
using PreTokenizer = std::function<void(std::vector<Word>& words)>;

/// Of null: one that changes nothing. Throws corrupt and version.
PreTokenizer read_pre_tokenizer(const JsonView& json);

/// When Metaspace puts its letter in front of a text: never, at its first word, always. Throws
/// corrupt.
enum class PrependScheme : std::uint8_t { never, first, always };
PrependScheme read_prepend_scheme(const JsonView& metaspace);

}  // namespace weft
