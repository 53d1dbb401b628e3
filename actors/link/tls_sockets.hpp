#pragma once
/// TCP sockets that nothing but TLS goes over: where a trainer listens, and a worker's way to it.

#include <chrono>
#include <cstdint>
#include <string_view>

#include "actors/link/tls_session.hpp"

namespace weft {

struct TlsListener {
  int fd;  ///< its owner's, non-blocking
  std::uint16_t port;
};

/// From now on it is lost within a minute of the other host's death, also where nothing is said.
void notice_dead_host(int fd);

/// At any free port where the address says 0. Throws io.
TlsListener listen_tls(const TlsAddress& address);

/// A connection that has shaken hands, has said `words` and heard an answer, which is still to be
/// read. Who listens may have no time for it at first. Throws timeout; io where nobody listens, or
/// one side doesn't take the other. Only a name that has to be looked up takes the resolver's time.
TlsSession dial_tls(const TlsAddress& address, const TlsContext& context, std::string_view words,
                    std::chrono::milliseconds timeout);

}  // namespace weft
