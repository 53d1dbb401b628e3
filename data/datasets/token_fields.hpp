#pragma once
/// TokenFields: a TokenField's fields, and how they are filled.

#include <span>
#include <string_view>
#include <vector>

#include <weft/text_files.hpp>

namespace weft {

class TokenFields {
 public:
  /// Throws invalid_argument.
  explicit TokenFields(const TokenField& options);

  /// The tokens, then the mask and the type ids if they have names.
  const std::vector<Field>& fields() const { return fields_; }
  /// Throws corrupt for a text that isn't UTF-8. `second`: null unless the texts are a pair.
  void write(std::string_view text, const std::string_view* second, ItemMemory out) const;

 private:
  const TokenField options_;
  EncodeOptions encode_;
  std::vector<Field> fields_;
};

}  // namespace weft
