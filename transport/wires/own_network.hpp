#pragma once
/// The addresses and ports at which this machine's processes listen for other machines.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transport/wires/wire_address.hpp"

namespace weft {

/// The ports at which a host may listen, both ends included. {0, 0} stands for any free port.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;

  bool is_any() const { return first == 0; }
  int size() const { return is_any() ? 0 : last - first + 1; }
  friend bool operator==(const PortRange&, const PortRange&) = default;
};

/// Parses "4711-4800" or "4711"; "" stands for any free port. Throws invalid_argument; the message
/// names `field`.
PortRange parse_ports(std::string_view text, std::string_view field);
/// Returns the text that parse_ports() reads.
std::string to_string(const PortRange& ports);

/// Returns a non-blocking TCP socket that listens at `at`, or -1 with errno. If the port of `at` is
/// 0, it is the first free port of the range. Sets the port of `at`.
int listen_at(WireAddress& at, const PortRange& ports);

/// Returns the numeric addresses of this machine in `network`, which is the name of a network
/// device ("eth1"), addresses ("10.0.0.0/8", "fd00::/8"), or "" for all outside of loopback. They
/// are IPv6 addresses only if there are no IPv4 addresses. Those that are valid only on one link
/// are left out. Throws invalid_argument, with all addresses of this machine, if `network` is
/// malformed or names none of them; the message names `field`.
std::vector<std::string> own_addresses(const std::string& network, std::string_view field);

/// Returns whether the numeric address is one of loopback. Other text isn't one.
bool is_loopback(std::string_view host);

}  // namespace weft
