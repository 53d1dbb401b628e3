#pragma once
/// Who speaks TLS at a port of this host without being a worker.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

#include <weft/tests/support/stranger.hpp>

namespace weft::testing {

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
