#pragma once
/// Makes the messages with which a worker reports the state of its chips to the trainer.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "actors/protocol/protocol.hpp"
#include "chips/engine/state_hash.hpp"

namespace weft {

/// The limit on hashes per message. A larger message would delay other messages on the same socket
/// for too long.
inline constexpr std::size_t kHashesPerMessage = 16384;

/// Returns the messages that contain all hashes that the chips have added to `hash`.
std::vector<StateHashes> to_messages(const StateHash& hash, int worker, std::uint64_t generation);

}  // namespace weft
