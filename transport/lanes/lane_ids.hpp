#pragma once
/// Ids of the processes and blocks of an actor system.

#include <cstdint>

namespace weft {

enum class PeerState : std::uint32_t {
  free = 0,
  joining = 1,  ///< the slot is given to a process that hasn't made its memory yet
  alive = 2,
  dead = 3,
};

/// The state and the incarnation of a slot. They are stored as one word, so that a reader never
/// combines the state of one process with the incarnation of another.
struct PeerLife {
  PeerState state = PeerState::free;
  std::uint32_t incarnation = 0;

  static PeerLife of(std::uint32_t word) {
    return {.state = static_cast<PeerState>(word & 3U), .incarnation = word >> 2U};
  }
  std::uint32_t word() const { return incarnation << 2U | static_cast<std::uint32_t>(state); }
  friend bool operator==(const PeerLife&, const PeerLife&) = default;
};

/// Identifies a process of an actor system.
struct PeerId {
  std::uint32_t slot = 0;
  std::uint32_t incarnation = 0;

  static PeerId of(std::uint64_t word) {
    return {.slot = static_cast<std::uint32_t>(word >> 32U),
            .incarnation = static_cast<std::uint32_t>(word)};
  }
  std::uint64_t word() const { return std::uint64_t{slot} << 32U | incarnation; }
  friend bool operator==(const PeerId&, const PeerId&) = default;
};

/// Identifies a block among all blocks of a system by the slot of its owner, whose heap has the
/// block, and the index of its row in the owner's ledger.
struct BlockId {
  std::uint32_t word = 0;

  static BlockId of(std::uint32_t owner, std::uint32_t index) { return {owner << 24U | index}; }
  std::uint32_t owner() const { return word >> 24U; }
  std::uint32_t index() const { return word & 0xff'ffffU; }
  friend bool operator==(const BlockId&, const BlockId&) = default;
};

}  // namespace weft
