#pragma once
/// TokenModel makes tokens of a word (tokenizer.json's "model").

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "data/text/json_view.hpp"
#include "data/text/vocabulary.hpp"

namespace weft {

/// Immutable, for any thread.
class TokenModel {
 public:
  virtual ~TokenModel() = default;

  /// Appends the tokens of a word that isn't empty.
  virtual void encode(std::string_view word, std::vector<std::int32_t>& ids) const = 0;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  explicit TokenModel(const JsonView& json) : vocabulary_(json["vocab"]) {}

  /// The id of the token that the key of `json` names. Throws corrupt for one that isn't there.
  std::int32_t find_named(const JsonView& json, std::string_view key) const;

 private:
  Vocabulary vocabulary_;
};

using TokenModelPtr = std::unique_ptr<const TokenModel>;

/// Byte pair encoding: the pair of the least rank is joined first.
TokenModelPtr read_bpe(const JsonView& json);

/// Throws corrupt, and version for another kind of model than BPE, WordPiece and WordLevel.
TokenModelPtr read_token_model(const JsonView& json);

}  // namespace weft
