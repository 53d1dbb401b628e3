#pragma once
/// Connects to a job's socket without being a worker.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace weft::testing {

/// A connection whose reads and writes give up after 20 s.
class Stranger {
 public:
  Stranger(Stranger&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), connected_(other.connected_) {}
  ~Stranger() {
    if (fd_ >= 0) ::close(fd_);
  }

  bool connected() const { return connected_; }
  int fd() const { return fd_; }
  /// Sends the words. Returns the number of bytes that the socket has accepted.
  std::size_t say(std::string_view words) const {
    std::size_t said = 0;
    while (said < words.size()) {
      const ssize_t count = ::send(fd_, words.data() + said, words.size() - said, MSG_NOSIGNAL);
      if (count <= 0) break;
      said += static_cast<std::size_t>(count);
    }
    return said;
  }
  /// Reads until `bytes` have arrived or the other side has closed the connection.
  std::string hear(std::size_t bytes) const {
    std::string heard(bytes, '\0');
    const ssize_t count = ::recv(fd_, heard.data(), bytes, MSG_WAITALL);
    heard.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return heard;
  }

 protected:
  template <typename Address>
  explicit Stranger(const Address& address, int family)
      : fd_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  }

 private:
  int fd_;
  bool connected_;
};

/// Connects to a Unix socket.
class UnixStranger : public Stranger {
 public:
  explicit UnixStranger(const std::string& path) : Stranger(address_of(path), AF_UNIX) {}

 private:
  static sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    return address;
  }
};

/// Connects to a port of 127.0.0.1.
class TcpStranger : public Stranger {
 public:
  explicit TcpStranger(std::uint16_t port) : Stranger(address_of(port), AF_INET) {}

 private:
  static sockaddr_in address_of(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
};

}  // namespace weft::testing
