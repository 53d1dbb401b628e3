#pragma once
/// What a worker tells the trainer of its chips' state.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "actors/device/state_hash.hpp"
#include "actors/protocol/protocol.hpp"

namespace weft {

/// A larger message would keep the socket from the others for too long.
inline constexpr std::size_t kHashesPerMessage = 16384;

/// All that the chips have added to `hash`.
std::vector<StateHashes> to_messages(const StateHash& hash, int worker, std::uint64_t generation);

}  // namespace weft
