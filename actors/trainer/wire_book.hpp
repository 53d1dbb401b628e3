#pragma once
/// WireBook: collects the addresses of all chips of a generation.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "actors/protocol/host_messages.hpp"

namespace weft {

class WireBook {
 public:
  WireBook() = default;
  WireBook(int num_chips, std::uint64_t generation)
      : all_{.generation = generation, .first_chip = 0, .addresses = {}} {
    all_.addresses.resize(static_cast<std::size_t>(num_chips));
  }

  /// Adds the addresses of a worker's chips. Returns those of all chips if they are complete now.
  /// Ignores those of another generation, of other chips, and those that are known.
  std::optional<WireAddresses> add(const WireAddresses& some) {
    const auto first = static_cast<std::size_t>(some.first_chip);
    const bool fits = some.first_chip >= 0 && first <= all_.addresses.size() &&
                      some.addresses.size() <= all_.addresses.size() - first;
    if (some.generation != all_.generation || !fits || some.addresses.empty()) return {};
    if (!known_.insert(some.first_chip).second) return {};
    std::ranges::copy(some.addresses, all_.addresses.begin() + some.first_chip);
    count_ += some.addresses.size();
    if (count_ < all_.addresses.size()) return {};
    return all_;
  }

 private:
  WireAddresses all_;
  std::set<std::int32_t> known_;  ///< first chips
  std::size_t count_ = 0;
};

}  // namespace weft
