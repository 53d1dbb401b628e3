#pragma once
/// secret_context(): TLS between processes that share a secret, without certificates.

#include <string_view>

#include "transport/wires/tls_session.hpp"

namespace weft {

/// Returns a context whose handshakes succeed only with processes that have the same secret. Each
/// connection has its own keys, which the secret alone doesn't reveal. `purpose` separates the uses
/// of a secret: contexts with different purposes don't accept each other.
TlsContext secret_context(std::string_view secret, std::string_view purpose, TlsSide side);

}  // namespace weft
