#pragma once
/// Reads and checks the options by which a tokenizer truncates and pads texts.

#include <optional>

#include <weft/data/tokenizer.hpp>

#include "data/text/json_view.hpp"

namespace weft {

/// These functions read an option; JSON null gives none. They throw corrupt.
std::optional<Truncation> read_truncation(const JsonView& json);
std::optional<Padding> read_padding(const JsonView& json);

/// These functions throw invalid_argument for options that can't be used.
void check_truncation(const Truncation& truncation);
void check_padding(const Padding& padding);

}  // namespace weft
