#pragma once
/// Reads and checks the options by which a tokenizer truncates and pads texts.

#include <optional>

#include <weft/data/tokenizer.hpp>

#include "data/text/json_view.hpp"

namespace weft {

/// Read an option. They return nothing for JSON null, and throw corrupt if the option is invalid.
std::optional<Truncation> read_truncation(const JsonView& json);
std::optional<Padding> read_padding(const JsonView& json);

/// Throw invalid_argument if the options can't be used.
void check_truncation(const Truncation& truncation);
void check_padding(const Padding& padding);

}  // namespace weft
