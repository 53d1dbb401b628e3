#pragma once
/// Who comes to a TLS port of this host without being a worker.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <openssl/ssl.h>

namespace weft::testing {

/// A TCP connection to 127.0.0.1 that gives up after 20 s of silence.
class TcpStranger {
 public:
  explicit TcpStranger(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  }
  TcpStranger(TcpStranger&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), connected_(other.connected_) {}
  ~TcpStranger() {
    if (fd_ >= 0) ::close(fd_);
  }

  bool connected() const { return connected_; }
  int fd() const { return fd_; }
  /// How much of it the other side has taken.
  std::size_t say(std::string_view words) const {
    std::size_t said = 0;
    while (said < words.size()) {
      const ssize_t count = ::send(fd_, words.data() + said, words.size() - said, MSG_NOSIGNAL);
      if (count <= 0) break;
      said += static_cast<std::size_t>(count);
    }
    return said;
  }

 private:
  int fd_;
  bool connected_;
};

/// What is answered to these words inside TLS 1.3 with this certificate ("": none), whoever
/// answers; "" where nothing is. Needs SIGPIPE to be ignored.
inline std::string answer_to(std::uint16_t port, const std::string& certificate,
                             const std::string& key, std::string_view words) {
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()),
                                                             SSL_CTX_free);
  if (!certificate.empty()) {
    SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str());
    SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM);
  }
  const TcpStranger stranger(port);
  const std::unique_ptr<SSL, void (*)(SSL*)> session(SSL_new(context.get()), SSL_free);
  SSL_set_fd(session.get(), stranger.fd());
  char heard[32];
  if (SSL_connect(session.get()) != 1) return {};
  SSL_write(session.get(), words.data(), static_cast<int>(words.size()));
  const int count = SSL_read(session.get(), heard, sizeof heard);
  return {heard, static_cast<std::size_t>(std::max(count, 0))};
}

}  // namespace weft::testing
