#pragma once
/// Finds the addresses and ports at which this machine's processes listen for other machines.

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
/// Returns the range as text that parse_ports() can read.
std::string to_string(const PortRange& ports);

/// Returns a non-blocking TCP socket that listens at `at`, or -1, with errno set. If the port of
/// `at` is 0, uses the first free port of `ports`. Sets the port of `at` to the one that is used.
int listen_at(WireAddress& at, const PortRange& ports);

/// Returns the numeric addresses that this machine has in `network`: a network device ("eth1"), a
/// range of addresses ("10.0.0.0/8", "fd00::/8"), or "" for all addresses except loopback. Returns
/// IPv6 addresses only if there are no IPv4 addresses, and leaves out addresses that are valid only
/// on one link. Throws invalid_argument if `network` is malformed or contains no address of this
/// machine; the message names `field` and all addresses of this machine.
std::vector<std::string> own_addresses(const std::string& network, std::string_view field);

/// Returns whether the text is a numeric loopback address.
bool is_loopback(std::string_view host);

}  // namespace weft
