/// Implements WordPiece and WordLevel.

#include "data/text/token_model.hpp"

#include <algorithm>
#include <string>

namespace weft {
namespace {

/// The model that takes the longest token with which the word begins, and then repeatedly the
/// longest token with which the rest begins. Tokens that aren't at the beginning of a word have a
/// prefix, as in "##ing".
class WordPiece : public TokenModel {
 public:
  explicit WordPiece(const JsonView& json)
      : TokenModel(json),
        unknown_(find_named(json, "unk_token")),
        prefix_(json["continuing_subword_prefix"].text_or("##")),
        points_max_(static_cast<std::size_t>(
            json["max_input_chars_per_word"].is_null()
                ? 100
                : json["max_input_chars_per_word"].integer(0, kTokenIdMax))) {}

  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override {
    const std::size_t before = ids.size();
    const auto points = std::ranges::count_if(word, [](char byte) { return is_begin(byte); });
    bool is_known = static_cast<std::size_t>(points) <= points_max_;
    for (std::size_t at = 0; is_known && at < word.size();) {
      const std::size_t bytes = take_longest(word.substr(at), at > 0, ids);
      is_known = bytes > 0;
      at += bytes;
    }
    if (is_known) return;
    ids.resize(before);
    ids.push_back(unknown_);
  }

 private:
  static bool is_begin(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80; }

  std::size_t take_longest(std::string_view text, bool is_inner,
                           std::vector<std::int32_t>& ids) const {
    std::string piece = is_inner ? prefix_ : "";
    const std::size_t prefix_bytes = piece.size();
    piece += text;
    for (std::size_t bytes = text.size(); bytes > 0; --bytes) {
      if (bytes < text.size() && !is_begin(text[bytes])) continue;
      const auto found = vocabulary().find(std::string_view(piece).substr(0, prefix_bytes + bytes));
      if (!found) continue;
      ids.push_back(*found);
      return bytes;
    }
    return 0;
  }

  const std::int32_t unknown_;
  const std::string prefix_;
  const std::size_t points_max_;
};

/// The model for which every word is one token.
class WordLevel : public TokenModel {
 public:
  explicit WordLevel(const JsonView& json)
      : TokenModel(json), unknown_(find_named(json, "unk_token")) {}

  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override {
    ids.push_back(vocabulary().find(word).value_or(unknown_));
  }

 private:
  const std::int32_t unknown_;
};

}  // namespace

std::int32_t TokenModel::find_named(const JsonView& json, std::string_view key) const {
  const std::string token = json[key].text();
  const auto id = vocabulary_.find(token);
  if (!id) json[key].refuse("a token of the vocabulary");
  return *id;
}

TokenModelPtr read_token_model(const JsonView& json) {
  static const std::vector<JsonKind<TokenModelPtr>> kKinds{
      {"BPE", read_bpe},
      {"WordLevel", [](const JsonView& each) { return std::make_unique<const WordLevel>(each); }},
      {"WordPiece", [](const JsonView& each) { return std::make_unique<const WordPiece>(each); }},
  };
  if (json["type"].is_null() && !json["merges"].is_null()) return read_bpe(json);
  return read_kind<TokenModelPtr>(json, kKinds);
}

}  // namespace weft
