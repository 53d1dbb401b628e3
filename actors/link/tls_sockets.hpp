#pragma once
/// TCP sockets that carry TLS only: the trainer's listening socket, and a worker's connection to
/// it.

#include <chrono>
#include <cstdint>
#include <string_view>

#include "actors/link/tls_session.hpp"

namespace weft {

struct TlsListener {
  int fd;  ///< owned by the caller, non-blocking
  std::uint16_t port;
};

/// Makes an idle connection fail within a minute of the other host's death.
void notice_dead_host(int fd);

/// Listens at the address; port 0 means any free one. Throws io.
TlsListener listen_tls(const TlsAddress& address);

/// Connects, makes the handshake, sends `words` and waits until an answer can be read. Retries
/// while the trainer is too busy. Throws timeout; io if nobody listens or one side refuses the
/// other. A host name that has to be looked up adds the resolver's time.
TlsSession dial_tls(const TlsAddress& address, const TlsContext& context, std::string_view words,
                    std::chrono::milliseconds timeout);

}  // namespace weft
