#pragma once
/// AddedTokens: finds the added tokens in a text, which is cut at them before it is cut into words.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "data/text/json_view.hpp"
#include "data/text/text_normalizer.hpp"
#include "data/text/vocabulary.hpp"

namespace weft {

/// A part of a text: an added token, or a text between added tokens.
struct TokenCut {
  std::string_view text{};
  std::int32_t id = -1;  ///< -1 if the part isn't a token
};

class AddedTokens {
 public:
  /// Reads the tokens from "added_tokens". Throws corrupt if a description is invalid.
  AddedTokens(const JsonView& json, const TextNormalizer& normalize);

  /// Returns the text of each token. The key is the id.
  const std::unordered_map<std::int32_t, std::string>& contents() const { return contents_; }
  bool is_special(const std::string& token) const { return special_.contains(token); }

  /// Cuts the original text at the tokens that are matched before normalization.
  std::vector<TokenCut> cut(std::string_view text) const { return plain_.cut(text); }
  /// Cuts a normalized text at the tokens that are matched after normalization.
  std::vector<TokenCut> cut_normalized(std::string_view text) const {
    return normalized_.cut(text);
  }

 private:
  struct Added {
    std::int32_t id = 0;
    bool is_word = false;  ///< whether the token matches only whole words
    bool takes_left = false;
    bool takes_right = false;  ///< whether a match includes white space to its right
  };
  /// Finds the longest matching token at each position of a text.
  class Finder {
   public:
    void add(std::string text, const Added& token);
    std::vector<TokenCut> cut(std::string_view text) const;

   private:
    const std::pair<const std::string, Added>* longest_at(std::string_view text) const;

    TextMap<Added> tokens_;
    std::array<std::vector<std::size_t>, 256> lengths_;  // by first byte: lengths, descending
  };

  std::unordered_map<std::int32_t, std::string> contents_;
  std::unordered_set<std::string> special_;
  Finder plain_;
  Finder normalized_;
};

}  // namespace weft
