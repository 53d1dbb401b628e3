#pragma once
/// OwnPorts: the ports of a process for actors with their own threads.

#include <bitset>
#include <cstdint>
#include <optional>

#include "transport/lanes/lane_format.hpp"

namespace weft {

/// Ports 1 to `shared` belong to threads that actors share, so they aren't given out.
class OwnPorts {
 public:
  explicit OwnPorts(std::uint32_t shared) : first_(1 + shared) {}

  std::uint32_t free() const {
    return kPortCountMax - first_ - static_cast<std::uint32_t>(taken_.count());
  }
  /// Takes and returns the lowest free port; nothing if none is free.
  std::optional<std::uint32_t> take() {
    for (std::uint32_t port = first_; port < kPortCountMax; ++port) {
      if (taken_.test(port)) continue;
      taken_.set(port);
      return port;
    }
    return std::nullopt;
  }
  /// Frees a port. Ignores ports of shared threads.
  void give_back(std::uint32_t port) { taken_.reset(port); }

 private:
  std::uint32_t first_;
  std::bitset<kPortCountMax> taken_{};
};

}  // namespace weft
