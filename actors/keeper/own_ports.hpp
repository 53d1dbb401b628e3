#pragma once
/// OwnPorts: the ports of a process at which actors with threads of their own are.

#include <bitset>
#include <cstdint>
#include <optional>

#include "transport/lanes/lane_format.hpp"

namespace weft {

/// Ports 1 to `shared` are those of the threads that actors share.
class OwnPorts {
 public:
  explicit OwnPorts(std::uint32_t shared) : first_(1 + shared) {}

  std::uint32_t free() const {
    return kPortCountMax - first_ - static_cast<std::uint32_t>(taken_.count());
  }
  /// Takes the lowest free port; nothing if there is none.
  std::optional<std::uint32_t> take() {
    for (std::uint32_t port = first_; port < kPortCountMax; ++port) {
      if (taken_.test(port)) continue;
      taken_.set(port);
      return port;
    }
    return std::nullopt;
  }
  /// Ports of shared threads are ignored.
  void give_back(std::uint32_t port) { taken_.reset(port); }

 private:
  std::uint32_t first_;
  std::bitset<kPortCountMax> taken_{};
};

}  // namespace weft
