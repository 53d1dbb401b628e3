#include "data/text/vocabulary.hpp"

#include <algorithm>
#include <utility>

namespace weft {

Vocabulary::Vocabulary(const JsonView& json) {
  const auto members = json.members();
  // The maximum of the largest id divided by the number of tokens. The table has an entry for each
  // id up to the largest, so a small file must not have large ids.
  constexpr std::int64_t kIdsPerTokenMax = 64;
  const std::int64_t ids_max =
      std::min(kTokenIdMax, kIdsPerTokenMax * (std::ssize(members) + kIdsPerTokenMax));
  for (const auto& [token, id] : members) {
    const auto number = static_cast<std::int32_t>(id.integer(0, ids_max - 1));
    if (this->token(number) != nullptr) {
      fail(Errc::corrupt, "{}: id {} belongs to two tokens", json.place(), number);
    }
    const auto place = static_cast<std::size_t>(number);
    if (place >= tokens_.size()) tokens_.resize(place + 1);
    tokens_[place] = token;
    ids_.emplace(token, number);
  }
}

std::optional<std::int32_t> Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return {};
  return found->second;
}

const std::string* Vocabulary::token(std::int32_t id) const {
  const auto place = static_cast<std::size_t>(id);
  if (id < 0 || place >= tokens_.size() || !tokens_[place]) return nullptr;
  return &*tokens_[place];
}

}  // namespace weft
