#pragma once
/// WireBook: collects the addresses of all chips in a generation.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "actors/protocol/host_messages.hpp"

namespace weft {

class WireBook {
 public:
  WireBook() = default;
  /// `host_0` is the address at which other hosts reach host 0. It replaces an address that means
  /// all addresses of host 0 ("0.0.0.0" or "[::]").
  WireBook(int num_chips, std::uint64_t generation, std::string host_0)
      : all_{.generation = generation, .first_chip = 0, .addresses = {}},
        host_0_(std::move(host_0)) {
    all_.addresses.resize(static_cast<std::size_t>(num_chips));
  }

  /// Adds the addresses of a worker's chips. Returns the addresses of all chips if they are
  /// complete now. Ignores addresses that are known, or are of another generation or of no chip of
  /// the job.
  std::optional<WireAddresses> add(const WireAddresses& some) {
    const auto first = static_cast<std::size_t>(some.first_chip);
    const bool fits = some.first_chip >= 0 && first <= all_.addresses.size() &&
                      some.addresses.size() <= all_.addresses.size() - first;
    if (some.generation != all_.generation || !fits || some.addresses.empty()) return {};
    if (!known_.insert(some.first_chip).second) return {};
    std::ranges::transform(some.addresses, all_.addresses.begin() + some.first_chip,
                           [this](const std::string& address) { return reachable(address); });
    count_ += some.addresses.size();
    if (count_ < all_.addresses.size()) return {};
    return all_;
  }

 private:
  std::string reachable(const std::string& address) const {
    for (const std::string_view all : {"0.0.0.0:", "[::]:"}) {
      if (host_0_.empty() || !address.starts_with(all)) continue;
      const bool is_v6 = host_0_.find(':') != std::string::npos;
      return (is_v6 ? "[" + host_0_ + "]:" : host_0_ + ":") + address.substr(all.size());
    }
    return address;
  }

  WireAddresses all_;
  std::string host_0_;
  std::set<std::int32_t> known_;  ///< first chips of the added addresses
  std::size_t count_ = 0;
};

}  // namespace weft
