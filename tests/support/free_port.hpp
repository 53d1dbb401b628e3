#pragma once
/// Finds a port of the loopback address at which nobody listens.

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace weft::testing {

/// Another process may take the port before the caller does, but that is rare among so many ports.
inline int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (fd < 0 || ::bind(fd, generic, size) != 0 || ::getsockname(fd, generic, &size) != 0) {
    throw std::system_error(errno, std::generic_category(), "no free port");
  }
  ::close(fd);
  return ntohs(address.sin_port);
}

}  // namespace weft::testing
