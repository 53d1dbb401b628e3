#pragma once
/// RuleCursor: a reading position in the text of a sharding rule.

#include <cstddef>
#include <string_view>

namespace weft {

/// A position that moves past the tokens and words that are accepted.
class RuleCursor {
 public:
  constexpr explicit RuleCursor(std::string_view text) : text_(text) {}

  static constexpr bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  }
  static constexpr bool is_word(char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '_';
  }

  constexpr bool at_end() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ == text_.size();
  }
  constexpr bool accept(std::string_view token) {
    if (at_end() || !text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  constexpr std::string_view word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  constexpr bool next_is(char c) const { return at_ < text_.size() && text_[at_] == c; }
  constexpr bool next_is_letter() { return !at_end() && is_letter(text_[at_]); }
  constexpr std::size_t at() const { return at_; }
  constexpr void go_back(std::size_t at) { at_ = at; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace weft
