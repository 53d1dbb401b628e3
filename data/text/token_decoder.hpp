#pragma once
/// TokenDecoder: turns tokens into text (tokenizer.json's "decoder").

#include <functional>
#include <string>
#include <vector>

#include "data/text/json_view.hpp"

namespace weft {

/// A function that turns tokens into pieces of the text. Any thread may call it.
using TokenDecoder = std::function<void(std::vector<std::string>& pieces)>;

/// Reads a decoder. For JSON null, returns one that puts spaces between tokens. Throws corrupt and
/// version.
TokenDecoder read_token_decoder(const JsonView& json);

}  // namespace weft
