#pragma once
/// TokenFields: makes the fields that a TokenField describes, and fills them.

#include <span>
#include <string_view>
#include <vector>

#include <weft/data/text_files.hpp>

namespace weft {

class TokenFields {
 public:
  /// Throws invalid_argument if the options can't be used.
  explicit TokenFields(const TokenField& options);

  /// Returns the field of the tokens, followed by the fields of the mask and of the type ids if
  /// `options` names them.
  const std::vector<Field>& fields() const { return fields_; }
  /// Writes the tokens of a text, or of a pair of texts if `second` isn't null, to `out`. Throws
  /// corrupt if a text isn't UTF-8.
  void write(std::string_view text, const std::string_view* second, ItemMemory out) const;

 private:
  const TokenField options_;
  EncodeOptions encode_;
  std::vector<Field> fields_;
};

}  // namespace weft
