#pragma once
/// Reads and checks the options by which a tokenizer cuts and fills up texts.

#include <optional>

#include <weft/tokenizer.hpp>

#include "data/text/json_view.hpp"

namespace weft {

/// Null is read as none. Throws corrupt.
std::optional<Truncation> read_truncation(const JsonView& json);
std::optional<Padding> read_padding(const JsonView& json);

/// Throws invalid_argument.
void check_truncation(const Truncation& truncation);
void check_padding(const Padding& padding);

}  // namespace weft
