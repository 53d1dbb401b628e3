#pragma once
/// WireAddress: a numeric address of a host, with a port.

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <string_view>

namespace weft {

struct WireAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
};

/// Parses "10.0.0.1" or "fd00::1", with port 0. Throws invalid_argument; the message names `field`.
WireAddress parse_wire_host(std::string_view text, std::string_view field);
/// Parses "10.0.0.1:4711" or "[fd00::1]:4711". Throws invalid_argument; the message names `field`.
WireAddress parse_wire_address(std::string_view text, std::string_view field);
/// Returns the address as text that parse_wire_address() can read.
std::string to_string(const WireAddress& address);

/// Returns the name of this host's network device that has the numeric address. Throws
/// invalid_argument if there is none.
std::string device_of(const std::string& host);

}  // namespace weft
