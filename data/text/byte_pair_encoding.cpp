/// Implements read_bpe().

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "data/text/token_model.hpp"
#include "data/text/unicode.hpp"

namespace weft {
namespace {

constexpr std::int32_t kNone = -1;

struct TokenPairHash {
  std::size_t operator()(std::uint64_t pair) const {
    return static_cast<std::size_t>((pair ^ (pair >> 29)) * 0x9e3779b97f4a7c15ULL);
  }
};

/// A token of the word that is being encoded, with its neighbors.
struct Symbol {
  std::int32_t id = kNone;  ///< kNone if it was joined to the previous symbol
  std::int32_t before = kNone;
  std::int32_t next = kNone;
};

class BytePairEncoding : public TokenModel {
 public:
  explicit BytePairEncoding(const JsonView& json)
      : TokenModel(json),
        prefix_(json["continuing_subword_prefix"].text_or("")),
        suffix_(json["end_of_word_suffix"].text_or("")),
        is_fused_(json["fuse_unk"].flag_or(false)),
        takes_whole_words_(json["ignore_merges"].flag_or(false)) {
    const JsonView dropout = json["dropout"];
    if (!dropout.is_null() && !dropout.is_number(0)) {
      fail(Errc::version,
           "{}: isn't supported, because weft tokenizes deterministically; set it to null",
           dropout.place());
    }
    if (!json["unk_token"].is_null()) unknown_ = find_named(json, "unk_token");
    if (json["byte_fallback"].flag_or(false)) find_byte_tokens();
    std::int32_t rank = 0;
    for (const JsonView& merge : json["merges"].items()) add_merge(merge, rank++);
  }

  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override {
    if (takes_whole_words_) {
      if (const auto whole = vocabulary().find(word)) return ids.push_back(*whole);
    }
    std::vector<Symbol> symbols = split(word);
    join_pairs(symbols);
    for (const Symbol& symbol : symbols) {
      if (symbol.id != kNone) ids.push_back(symbol.id);
    }
  }

 private:
  struct Merge {
    std::int32_t rank;
    std::int32_t joined;
  };
  /// A pair that may be joined. The pair with the lowest rank is joined first.
  struct Candidate {
    std::int32_t rank;
    std::int32_t place;
    std::int32_t joined;
    bool operator>(const Candidate& other) const {
      return std::tie(rank, place) > std::tie(other.rank, other.place);
    }
  };
  using Candidates =
      std::priority_queue<Candidate, std::vector<Candidate>, std::greater<Candidate>>;

  static std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }

  void find_byte_tokens() {
    for (unsigned byte = 0; byte < 256; ++byte) {
      byte_tokens_.push_back(vocabulary().find(fmt::format("<0x{:02X}>", byte)).value_or(kNone));
    }
  }

  void add_merge(const JsonView& json, std::int32_t rank) {
    std::string left;
    std::string right;
    if (json.is_list()) {
      const std::vector<JsonView> parts = json.items();
      if (parts.size() != 2) json.refuse("two tokens");
      left = parts[0].text();
      right = parts[1].text();
    } else {
      const std::string& both = json.text();
      const std::size_t space = both.find(' ');
      if (space == std::string::npos || both.find(' ', space + 1) != std::string::npos) {
        json.refuse("two tokens with a space between them");
      }
      left = both.substr(0, space);
      right = both.substr(space + 1);
    }
    // The joined token doesn't have the right token's prefix, which marks tokens that aren't at the
    // beginning of a word, in its middle.
    const auto joined =
        vocabulary().find(left + right.substr(std::min(prefix_.size(), right.size())));
    const auto left_id = vocabulary().find(left);
    const auto right_id = vocabulary().find(right);
    if (!joined || !left_id || !right_id) {
      json.refuse("two tokens of the vocabulary that together are also a token of it");
    }
    merges_.insert_or_assign(pair_of(*left_id, *right_id), Merge{rank, *joined});
  }

  /// Appends the tokens of a character's bytes. Returns false if there is no token for a byte.
  bool split_bytes(std::string_view bytes, std::vector<Symbol>& symbols) const {
    const auto token_of = [&](char byte) { return byte_tokens_[static_cast<unsigned char>(byte)]; };
    if (byte_tokens_.empty() ||
        std::ranges::any_of(bytes, [&](char byte) { return token_of(byte) == kNone; })) {
      return false;
    }
    for (const char byte : bytes) symbols.push_back({.id = token_of(byte)});
    return true;
  }

  /// Returns the tokens of the word's characters. The token for an unknown character is added only
  /// before the next known or unknown character, so it comes after the tokens of characters that
  /// are split into bytes in between.
  std::vector<Symbol> split(std::string_view word) const {
    std::vector<Symbol> symbols;
    symbols.reserve(word.size());
    bool is_unknown_due = false;
    std::string piece;
    for_each_point(word, [&](char32_t, std::string_view bytes) {
      piece = bytes.data() == word.data() ? "" : prefix_;
      piece += bytes;
      if (bytes.data() + bytes.size() == word.data() + word.size()) piece += suffix_;
      if (const auto id = vocabulary().find(piece)) {
        if (std::exchange(is_unknown_due, false)) symbols.push_back({.id = unknown_});
        symbols.push_back({.id = *id});
      } else if (!split_bytes(piece, symbols) && unknown_ != kNone) {
        if (is_unknown_due && !is_fused_) symbols.push_back({.id = unknown_});
        is_unknown_due = true;
      }
    });
    if (is_unknown_due) symbols.push_back({.id = unknown_});
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      symbols[i].before = static_cast<std::int32_t>(i) - 1;
      symbols[i].next = i + 1 < symbols.size() ? static_cast<std::int32_t>(i) + 1 : kNone;
    }
    return symbols;
  }

  const Merge* merge_at(const std::vector<Symbol>& symbols, std::int32_t place) const {
    const Symbol& left = symbols[static_cast<std::size_t>(place)];
    if (left.id == kNone || left.next == kNone) return nullptr;
    const auto found =
        merges_.find(pair_of(left.id, symbols[static_cast<std::size_t>(left.next)].id));
    return found == merges_.end() ? nullptr : &found->second;
  }

  void join_pairs(std::vector<Symbol>& symbols) const {
    Candidates candidates;
    const auto consider = [&](std::int32_t place) {
      const Merge* const merge = place == kNone ? nullptr : merge_at(symbols, place);
      if (merge != nullptr) candidates.push({merge->rank, place, merge->joined});
    };
    for (std::int32_t place = 0; place < std::ssize(symbols); ++place) consider(place);
    while (!candidates.empty()) {
      const Candidate candidate = candidates.top();
      candidates.pop();
      // The symbols of the pair may already have been joined to others.
      const Merge* const merge = merge_at(symbols, candidate.place);
      if (merge == nullptr || merge->joined != candidate.joined) continue;
      Symbol& left = symbols[static_cast<std::size_t>(candidate.place)];
      Symbol& right = symbols[static_cast<std::size_t>(left.next)];
      left.id = candidate.joined;
      right.id = kNone;
      left.next = right.next;
      if (left.next != kNone) symbols[static_cast<std::size_t>(left.next)].before = candidate.place;
      consider(left.before);
      consider(candidate.place);
    }
  }

  const std::string prefix_;
  const std::string suffix_;
  const bool is_fused_;
  const bool takes_whole_words_;
  std::int32_t unknown_ = kNone;
  std::vector<std::int32_t> byte_tokens_;  // by byte; empty without byte_fallback
  std::unordered_map<std::uint64_t, Merge, TokenPairHash> merges_;
};

}  // namespace

TokenModelPtr read_bpe(const JsonView& json) {
  return std::make_unique<const BytePairEncoding>(json);
}

}  // namespace weft
