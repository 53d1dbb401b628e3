#pragma once
/// Makes TCP sockets that carry only TLS: the socket at which the trainer listens, and a worker's
/// connection to it.

#include <chrono>
#include <cstdint>
#include <string_view>

#include <weft/job/tls.hpp>

#include "transport/wires/own_network.hpp"
#include "transport/wires/tls_session.hpp"

namespace weft {

struct TlsListener {
  int fd;  ///< owned by the caller, non-blocking
  std::uint16_t port;
};

/// Makes an idle connection fail within a minute after the other host has died.
void notice_dead_host(int fd);

/// Listens at the address. Port 0 means any free port of `ports`. Throws io; the message names
/// `field`, the configuration field with the address.
TlsListener listen_tls(const TlsAddress& address, const PortRange& ports = {},
                       std::string_view field = "backend.tls.listen");

/// Connects, makes the handshake, sends `words` and waits until an answer can be read. Retries
/// while the trainer is too busy. Throws timeout; unavailable if nothing listens at the address; io
/// if the address can't be reached or one side refuses the other. If the host name must be looked
/// up, the resolver's time is added to the timeout.
TlsSession dial_tls(const TlsAddress& address, const TlsContext& context, std::string_view words,
                    std::chrono::milliseconds timeout);

}  // namespace weft
