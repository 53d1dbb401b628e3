#pragma once
/// An address of wires over UCX consists of "ucx:", the number of UCX's own bytes, ":" and these
/// bytes. The number detects an address that was cut off, beyond whose end UCX would read.

#include <string>
#include <string_view>

#include "transport/wires/wires.hpp"

namespace weft {

std::string ucx_address(std::string_view bytes);
/// Returns UCX's own bytes in a peer's address. Throws invalid_argument, naming the peer, if the
/// address isn't one of wires over UCX, or was cut off.
std::string_view ucx_bytes(const WirePeer& peer);

}  // namespace weft
