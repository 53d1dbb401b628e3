#pragma once
/// TokenDecoder makes text of tokens (tokenizer.json's "decoder").

#include <functional>
#include <string>
#include <vector>

#include "data/text/json_view.hpp"

namespace weft {

/// Changes tokens to pieces of the text. For any thread.
using TokenDecoder = std::function<void(std::vector<std::string>& pieces)>;

/// Null is read as one that puts spaces between tokens. Throws corrupt and version.
TokenDecoder read_token_decoder(const JsonView& json);

}  // namespace weft
