#pragma once
/// Reads and checks the options by which a tokenizer truncates and pads texts.

#include <optional>

#include <weft/data/tokenizer.hpp>

#include "data/text/json_view.hpp"

namespace weft {

/// Reads the option; null means none. Throws corrupt.
std::optional<Truncation> read_truncation(const JsonView& json);
std::optional<Padding> read_padding(const JsonView& json);

/// Throws invalid_argument for options that can't be used.
void check_truncation(const Truncation& truncation);
void check_padding(const Padding& padding);

}  // namespace weft
