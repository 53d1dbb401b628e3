#pragma once
/// certificate_context(): TLS between processes that have certificates of one CA.

#include <weft/job/tls.hpp>

#include "transport/wires/tls_session.hpp"

namespace weft {

/// Reads the files of `tls` into a context for the given side. Throws the errors of
/// require_sound().
TlsContext certificate_context(const TlsConfig& tls, TlsSide side);

}  // namespace weft
