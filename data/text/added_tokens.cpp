#include "data/text/added_tokens.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "data/text/unicode.hpp"

namespace weft {
namespace {

/// Returns the place at which the last character of the text begins. The text mustn't be empty.
std::size_t last_character(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80) --at;
  return at;
}

bool ends_with_word(std::string_view text) {
  return !text.empty() && is_word_point(first_character(text.substr(last_character(text))).point);
}

bool begins_with_word(std::string_view text) {
  return !text.empty() && is_word_point(first_character(text).point);
}

std::size_t space_bytes_at_end(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    const std::size_t at = last_character(text.substr(0, end));
    if (!is_white_space(first_character(text.substr(at)).point)) break;
    end = at;
  }
  return text.size() - end;
}

std::size_t space_bytes_at_begin(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Character character = first_character(text.substr(at));
    if (!is_white_space(character.point)) break;
    at += character.bytes;
  }
  return at;
}

}  // namespace

AddedTokens::AddedTokens(const JsonView& json, const TextNormalizer& normalize) {
  if (json.is_null()) return;
  for (const JsonView& token : json.items()) {
    const auto id = static_cast<std::int32_t>(token["id"].integer(0, kTokenIdMax - 1));
    std::string content = token["content"].text();
    const bool is_special = token["special"].flag_or(false);
    if (content.empty()) continue;
    if (is_special) special_.insert(content);
    contents_.insert_or_assign(id, content);
    const Added added{.id = id,
                      .is_word = token["single_word"].flag_or(false),
                      .takes_left = token["lstrip"].flag_or(false),
                      .takes_right = token["rstrip"].flag_or(false)};
    if (token["normalized"].flag_or(!is_special)) {
      Word word{std::move(content)};
      normalize(word);
      normalized_.add(std::move(word.text), added);
    } else {
      plain_.add(std::move(content), added);
    }
  }
}

void AddedTokens::Finder::add(std::string text, const Added& token) {
  if (text.empty()) return;
  std::vector<std::size_t>& lengths = lengths_[static_cast<unsigned char>(text[0])];
  if (std::ranges::find(lengths, text.size()) == lengths.end()) {
    lengths.push_back(text.size());
    std::ranges::sort(lengths, std::greater());
  }
  tokens_.try_emplace(std::move(text), token);
}

auto AddedTokens::Finder::longest_at(std::string_view text) const
    -> const std::pair<const std::string, Added>* {
  for (const std::size_t length : lengths_[static_cast<unsigned char>(text[0])]) {
    if (length > text.size()) continue;
    const auto found = tokens_.find(text.substr(0, length));
    if (found != tokens_.end()) return &*found;
  }
  return nullptr;
}

std::vector<TokenCut> AddedTokens::Finder::cut(std::string_view text) const {
  std::vector<TokenCut> parts;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size() && !tokens_.empty();) {
    const auto* const found = longest_at(text.substr(at));
    if (found == nullptr) {
      ++at;
      continue;
    }
    const Added& token = found->second;
    std::size_t begin = at;
    std::size_t end = at + found->first.size();
    at = end;
    if (token.is_word &&
        (ends_with_word(text.substr(0, begin)) || begins_with_word(text.substr(end)))) {
      continue;
    }
    if (token.takes_left) begin -= space_bytes_at_end(text.substr(0, begin));
    if (token.takes_right) end += space_bytes_at_begin(text.substr(end));
    begin = std::max(begin, done);
    if (begin > done) parts.push_back({text.substr(done, begin - done)});
    parts.push_back({text.substr(begin, end - begin), token.id});
    done = end;
  }
  if (done < text.size()) parts.push_back({text.substr(done)});
  return parts;
}

}  // namespace weft
