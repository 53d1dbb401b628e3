#include "transport/wires/own_network.hpp"

#include <ifaddrs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

struct OwnAddress {
  std::string device;
  WireAddress address;
};

std::span<const std::uint8_t> bytes_of(const WireAddress& address) {
  if (address.bytes.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.bytes);
    return v6.sin6_addr.s6_addr;
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(address.bytes);
  return {reinterpret_cast<const std::uint8_t*>(&v4.sin_addr), sizeof v4.sin_addr};
}

bool is_v6(const WireAddress& address) { return address.bytes.ss_family == AF_INET6; }

bool is_loopback(const WireAddress& address) {
  const auto bytes = bytes_of(address);
  if (!is_v6(address)) return bytes[0] == 127;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address.bytes).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6);
}

/// Returns whether an address is valid only on one link. Another machine can't use such an address,
/// which needs the name of a device.
bool is_of_one_link(const WireAddress& address) {
  const auto bytes = bytes_of(address);
  if (!is_v6(address)) return bytes[0] == 169 && bytes[1] == 254;
  return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

std::vector<OwnAddress> addresses_of_machine() {
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) fail(Errc::io, "getifaddrs: {}", std::strerror(errno));
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> devices(found, ::freeifaddrs);
  std::vector<OwnAddress> addresses;
  for (const ifaddrs* at = found; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr) continue;
    OwnAddress own{.device = at->ifa_name, .address = {}};
    if (at->ifa_addr->sa_family == AF_INET) own.address.size = sizeof(sockaddr_in);
    if (at->ifa_addr->sa_family == AF_INET6) own.address.size = sizeof(sockaddr_in6);
    if (own.address.size == 0) continue;
    std::memcpy(own.address.get(), at->ifa_addr, own.address.size);
    if (!is_of_one_link(own.address)) addresses.push_back(own);
  }
  return addresses;
}

struct Network {
  WireAddress address;
  unsigned bits = 0;

  bool has(const WireAddress& other) const {
    if (other.bytes.ss_family != address.bytes.ss_family) return false;
    const auto a = bytes_of(address);
    const auto b = bytes_of(other);
    for (unsigned bit = 0; bit < bits; ++bit) {
      if (((a[bit / 8] ^ b[bit / 8]) & (0x80U >> bit % 8)) != 0) return false;
    }
    return true;
  }
};

/// Parses a network such as "10.0.0.0/8". Returns nothing for text without "/", such as the name of
/// a device.
std::optional<Network> parse_network(const std::string& text, std::string_view field) {
  const std::size_t slash = text.find('/');
  if (slash == text.npos) return {};
  Network network;
  try {
    network.address = parse_wire_host(text.substr(0, slash), field);
  } catch (const Error&) {
    fail(Errc::invalid_argument,
         "{} = \"{}\": expected a numeric address before \"/\", as in 10.0.0.0/8", field, text);
  }
  const std::string_view digits = std::string_view(text).substr(slash + 1);
  const auto most = static_cast<unsigned>(8 * bytes_of(network.address).size());
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), network.bits);
  if (error != std::errc() || end != digits.data() + digits.size() || network.bits > most) {
    fail(Errc::invalid_argument, "{} = \"{}\": expected 0 to {} bits after \"/\", as in 10.0.0.0/8",
         field, text, most);
  }
  return network;
}

std::string host_of(const WireAddress& address) {
  const std::string text = to_string(address);
  const std::string host = text.substr(0, text.rfind(':'));
  return is_v6(address) ? host.substr(1, host.size() - 2) : host;
}

}  // namespace

PortRange parse_ports(std::string_view text, std::string_view field) {
  if (text.empty()) return {};
  const auto number = [](std::string_view digits) {
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    return error == std::errc() && end == digits.data() + digits.size() ? port : std::uint16_t{0};
  };
  const std::size_t dash = text.find('-');
  PortRange ports{.first = number(text.substr(0, dash))};
  ports.last = dash == text.npos ? ports.first : number(text.substr(dash + 1));
  if (ports.first == 0 || ports.last < ports.first) {
    fail(Errc::invalid_argument,
         "{} = \"{}\": expected a range of ports from 1 to 65535, such as \"4711-4800\", or \"\" "
         "for any free ports",
         field, text);
  }
  return ports;
}

std::string to_string(const PortRange& ports) {
  return ports.is_any() ? "" : fmt::format("{}-{}", ports.first, ports.last);
}

int listen_at(WireAddress& at, const PortRange& ports) {
  in_port_t& port = is_v6(at) ? reinterpret_cast<sockaddr_in6&>(at.bytes).sin6_port
                              : reinterpret_cast<sockaddr_in&>(at.bytes).sin_port;
  const bool searches = port == 0 && !ports.is_any();
  std::uint32_t next = ports.first;
  for (;;) {
    if (searches) port = htons(static_cast<std::uint16_t>(next));
    const int fd = ::socket(at.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    // Without this option, a port stays in use for a minute after its last connection.
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(fd, at.get(), at.size) == 0 && ::listen(fd, SOMAXCONN) == 0 &&
        ::getsockname(fd, at.get(), &at.size) == 0) {
      return fd;
    }
    const int error = errno;
    ::close(fd);
    errno = error;
    if (!searches || error != EADDRINUSE || next++ == ports.last) return -1;
  }
}

std::vector<std::string> own_addresses(const std::string& network, std::string_view field) {
  const std::vector<OwnAddress> all = addresses_of_machine();
  const std::optional<Network> wanted = parse_network(network, field);
  const auto fits = [&](const OwnAddress& own) {
    if (network.empty()) return !is_loopback(own.address);
    return wanted ? wanted->has(own.address) : own.device == network;
  };
  std::vector<std::string> found;
  for (const bool v6 : {false, true}) {
    if (!found.empty()) break;
    for (const OwnAddress& own : all) {
      if (is_v6(own.address) == v6 && fits(own)) found.push_back(host_of(own.address));
    }
  }
  if (found.empty() && !network.empty()) {
    std::vector<std::string> known;
    for (const OwnAddress& own : all) {
      known.push_back(fmt::format("{} ({})", host_of(own.address), own.device));
    }
    fail(Errc::invalid_argument,
         "{} = \"{}\": expected the name of a network device of this machine, or addresses such as "
         "\"10.0.0.0/8\"; its addresses are {}",
         field, network, fmt::join(known, ", "));
  }
  return found;
}

bool is_loopback(std::string_view host) {
  WireAddress address;
  try {
    address = parse_wire_host(host, "");
  } catch (const Error&) {
    return false;
  }
  return is_loopback(address);
}

}  // namespace weft
