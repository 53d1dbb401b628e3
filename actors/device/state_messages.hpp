#pragma once
/// Messages from a worker to the trainer about the state of its chips.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "actors/protocol/protocol.hpp"
#include "chips/engine/state_hash.hpp"

namespace weft {

/// The limit on hashes per message. A larger message would block the socket for other messages for
/// too long.
inline constexpr std::size_t kHashesPerMessage = 16384;

/// Returns messages that together have all the hashes that the chips have added to `hash`.
std::vector<StateHashes> to_messages(const StateHash& hash, int worker, std::uint64_t generation);

}  // namespace weft
