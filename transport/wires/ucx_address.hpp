#pragma once
/// The addresses of wires over UCX: "ucx:", the number of UCX's own bytes, ":" and these bytes. UCX
/// doesn't ask for their number, and would read beyond the end of an address that was cut off.

#include <string>
#include <string_view>

#include "transport/wires/wires.hpp"

namespace weft {

std::string ucx_address(std::string_view bytes);
/// Returns UCX's own bytes of a peer's address. Throws invalid_argument, naming the peer, if it
/// isn't an address of wires over UCX, or isn't whole.
std::string_view ucx_bytes(const WirePeer& peer);

}  // namespace weft
