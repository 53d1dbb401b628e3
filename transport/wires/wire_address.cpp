#include "transport/wires/wire_address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

bool read_host(std::string_view text, WireAddress& address) {
  const std::string host(text);
  auto& v4 = reinterpret_cast<sockaddr_in&>(address.bytes);
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    address.size = sizeof v4;
    return true;
  }
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address.bytes);
  if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    address.size = sizeof v6;
    return true;
  }
  return false;
}

in_port_t& port_of(WireAddress& address) {
  return address.bytes.ss_family == AF_INET6
             ? reinterpret_cast<sockaddr_in6&>(address.bytes).sin6_port
             : reinterpret_cast<sockaddr_in&>(address.bytes).sin_port;
}

bool has_address(const sockaddr* at, const WireAddress& wanted) {
  if (at == nullptr || at->sa_family != wanted.bytes.ss_family) return false;
  if (at->sa_family == AF_INET) {
    return std::memcmp(&reinterpret_cast<const sockaddr_in*>(at)->sin_addr,
                       &reinterpret_cast<const sockaddr_in*>(wanted.get())->sin_addr,
                       sizeof(in_addr)) == 0;
  }
  return at->sa_family == AF_INET6 &&
         std::memcmp(&reinterpret_cast<const sockaddr_in6*>(at)->sin6_addr,
                     &reinterpret_cast<const sockaddr_in6*>(wanted.get())->sin6_addr,
                     sizeof(in6_addr)) == 0;
}

/// Returns the beginning of the text for a message, with "?" in place of unprintable characters.
std::string printable(std::string_view text) {
  std::string result(text.substr(0, 64));
  for (char& c : result) {
    if (c < ' ' || c > '~') c = '?';
  }
  return result;
}

}  // namespace

WireAddress parse_wire_host(std::string_view text, std::string_view field) {
  WireAddress address;
  if (!read_host(text, address)) {
    fail(Errc::invalid_argument,
         "{} = \"{}\": expected a numeric address such as 10.0.0.1 or fd00::1", field,
         printable(text));
  }
  return address;
}

WireAddress parse_wire_address(std::string_view text, std::string_view field) {
  const std::size_t colon = text.rfind(':');
  WireAddress address;
  std::uint16_t port = 0;
  bool is_good = colon != std::string_view::npos;
  if (is_good) {
    std::string_view host = text.substr(0, colon);
    const bool bracketed = host.starts_with('[') && host.ends_with(']');
    if (bracketed) host = host.substr(1, host.size() - 2);
    const std::string_view digits = text.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    is_good = read_host(host, address) && error == std::errc() &&
              end == digits.data() + digits.size() && port != 0 &&
              bracketed == (address.bytes.ss_family == AF_INET6);
  }
  if (!is_good) {
    fail(Errc::invalid_argument,
         "{} = \"{}\": expected a numeric address and a port, such as 10.0.0.1:4711 or "
         "[fd00::1]:4711",
         field, printable(text));
  }
  port_of(address) = htons(port);
  return address;
}

std::string to_string(const WireAddress& address) {
  WireAddress copy = address;
  const std::uint16_t port = ntohs(port_of(copy));
  char text[INET6_ADDRSTRLEN] = "";
  if (copy.bytes.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(copy.bytes);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    return fmt::format("[{}]:{}", text, port);
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(copy.bytes);
  ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  return fmt::format("{}:{}", text, port);
}

std::string device_of(const std::string& host) {
  const WireAddress wanted = parse_wire_host(host, "wire host");
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) {
    fail(Errc::io, "wire host = \"{}\": getifaddrs: {}", host, std::strerror(errno));
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> devices(found, ::freeifaddrs);
  for (const ifaddrs* at = found; at != nullptr; at = at->ifa_next) {
    if (has_address(at->ifa_addr, wanted)) return at->ifa_name;
  }
  fail(Errc::invalid_argument,
       "wire host = \"{}\": no network device of this host has this address", host);
}

}  // namespace weft
