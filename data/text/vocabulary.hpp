#pragma once
/// Vocabulary: tokens and their numbers.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/text/json_view.hpp"

namespace weft {

/// Tokens and ids from 0 to this.
inline constexpr std::int64_t kTokenIdMax = std::int64_t{1} << 26;

/// For maps of texts that are asked for views.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};
template <typename Value>
using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

class Vocabulary {
 public:
  /// {"token": id}. Throws corrupt for ids that are no such numbers, or that two tokens have.
  explicit Vocabulary(const JsonView& json);

  /// One more than the largest id.
  std::int32_t end() const { return static_cast<std::int32_t>(tokens_.size()); }
  std::optional<std::int32_t> find(std::string_view token) const;
  /// Null for an id that no token has.
  const std::string* token(std::int32_t id) const;

 private:
  TextMap<std::int32_t> ids_;
  std::vector<std::optional<std::string>> tokens_;
};

}  // namespace weft
