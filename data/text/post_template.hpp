#pragma once
/// PostTemplate: the special tokens that surround a text's tokens (tokenizer.json's
/// "post_processor").

#include <cstdint>
#include <vector>

#include "data/text/json_view.hpp"

namespace weft {

/// A part of a template: the tokens of a text, or special tokens.
struct TemplatePart {
  int sequence = -1;  ///< 0: the first text, 1: the second; -1: `special`
  std::vector<std::int32_t> special{};
  std::int32_t type_id = 0;
};

struct PostTemplate {
  std::vector<TemplatePart> single{{.sequence = 0}};
  std::vector<TemplatePart> pair{{.sequence = 0}, {.sequence = 1, .type_id = 1}};
};

/// Reads a template. For JSON null, returns a template without special tokens. Throws corrupt and
/// version.
PostTemplate read_post_template(const JsonView& json);

}  // namespace weft
