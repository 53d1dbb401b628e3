#pragma once
/// Vocabulary: tokens and their ids.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/text/json_view.hpp"

namespace weft {

/// The limit of ids: an id is at least 0 and less than this.
inline constexpr std::int64_t kTokenIdMax = std::int64_t{1} << 26;

/// A hash with which maps with keys of std::string can be searched for a std::string_view.
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
  /// Reads an object such as {"token": id}. Throws corrupt if an id is invalid, or two tokens have
  /// the same id.
  explicit Vocabulary(const JsonView& json);

  /// Returns the largest id plus 1.
  std::int32_t end() const { return static_cast<std::int32_t>(tokens_.size()); }
  std::optional<std::int32_t> find(std::string_view token) const;
  /// Returns the token with this id, or null if no token has it.
  const std::string* token(std::int32_t id) const;

 private:
  TextMap<std::int32_t> ids_;
  std::vector<std::optional<std::string>> tokens_;
};

}  // namespace weft
