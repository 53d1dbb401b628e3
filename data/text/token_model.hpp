#pragma once
/// TokenModel: turns a word into tokens (tokenizer.json's "model").

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "data/text/json_view.hpp"
#include "data/text/vocabulary.hpp"

namespace weft {

/// Turns words into tokens. A model is immutable, and any thread may use it.
class TokenModel {
 public:
  virtual ~TokenModel() = default;

  /// Appends the tokens of a word, which must not be empty.
  virtual void encode(std::string_view word, std::vector<std::int32_t>& ids) const = 0;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  explicit TokenModel(const JsonView& json) : vocabulary_(json["vocab"]) {}

  /// Returns the id of the token whose name is the value of `key` in `json`. Throws corrupt if
  /// there is no such token.
  std::int32_t find_named(const JsonView& json, std::string_view key) const;

 private:
  Vocabulary vocabulary_;
};

using TokenModelPtr = std::unique_ptr<const TokenModel>;

/// Reads a byte pair encoding, which joins the pair with the lowest rank first.
TokenModelPtr read_bpe(const JsonView& json);

/// Reads a model. Throws corrupt, and version for a model other than BPE, WordPiece and WordLevel.
TokenModelPtr read_token_model(const JsonView& json);

}  // namespace weft
