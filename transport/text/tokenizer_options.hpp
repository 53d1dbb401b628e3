#pragma once
/// How a tokenizer cuts and fills up: what tokenizer.json says, and what a caller may.

#include <optional>

#include <weft/tokenizer.hpp>

#include "transport/text/json_view.hpp"

namespace weft {

/// None for null. Throws corrupt.
std::optional<Truncation> read_truncation(const JsonView& json);
std::optional<Padding> read_padding(const JsonView& json);

/// Throws invalid_argument.
void check_truncation(const Truncation& truncation);
void check_padding(const Padding& padding);

}  // namespace weft
