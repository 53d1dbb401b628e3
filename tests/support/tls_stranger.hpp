#pragma once
/// Speaks TLS at a port of this machine without being a worker.

#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

#include "tests/support/stranger.hpp"
#include "transport/wires/tls_session.hpp"

namespace weft::testing {

/// Sends `words` over TLS 1.3 with this client certificate ("" for none) and returns the answer, or
/// "" if no answer comes. Doesn't verify the server. SIGPIPE must be ignored.
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

/// A TLS client with a valid certificate, on one end of a socket pair, that never reads.
class KeyUpdater {
 public:
  KeyUpdater(const TlsContext& server, const TlsContext& client)
      : KeyUpdater(server, client, socket_pair()) {}

  TlsSession& server() { return server_; }
  /// Requests new keys up to `count_max` times. Returns how many of the requests could be sent.
  int update(int count_max) const {
    int count = 0;
    while (count < count_max && SSL_key_update(client_.get(), SSL_KEY_UPDATE_REQUESTED) == 1 &&
           SSL_do_handshake(client_.get()) == 1) {
      ++count;
    }
    return count;
  }
  void say(std::string_view words) const {
    SSL_write(client_.get(), words.data(), static_cast<int>(words.size()));
  }

 private:
  struct Ends {
    int server;
    int client;
  };
  static Ends socket_pair() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
      std::abort();
    }
    return {ends[0], ends[1]};
  }
  KeyUpdater(const TlsContext& server, const TlsContext& client, const Ends& ends)
      : server_(server, ends.server), client_(SSL_new(client.get()), SSL_free) {
    SSL_set_fd(client_.get(), ends.client);
    SSL_set_connect_state(client_.get());
    BIO_set_close(SSL_get_rbio(client_.get()), BIO_CLOSE);
    while (SSL_do_handshake(client_.get()) != 1 || server_.handshake() != TlsProgress::done) {
      server_.handshake();
    }
  }

  TlsSession server_;
  std::unique_ptr<SSL, void (*)(SSL*)> client_;
};

}  // namespace weft::testing
