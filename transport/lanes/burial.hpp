#pragma once
/// Burial: releases the blocks that a dead process of an actor system held, and frees its slot.

#include <cstdint>
#include <vector>

#include "transport/lanes/peer_table.hpp"
#include "transport/lanes/peers.hpp"

namespace weft {

/// The keeper makes a Burial for each peer whose process has ended, and calls finish() until it
/// returns true. Invariant 5 of lane_node.hpp says which bits are cleared when.
class Burial {
 public:
  /// Marks the peer dead, clears its bits of all blocks except those in messages that other peers
  /// can still take, and wakes all peers so that they settle the death.
  Burial(PeerTable& table, Peers& peers, PeerId dead);

  PeerId dead() const { return dead_; }

  /// Once all living peers have settled the death, clears the remaining bits. When no process holds
  /// a block of the dead process's heap any more, removes the dead process's memory, frees its slot
  /// and returns true. Throws io or no_space if the memory of a peer can't be mapped; finish() may
  /// then be called again.
  bool finish();

 private:
  void begin();
  void collect_sent();
  void clear_bits(const std::vector<BlockId>& kept);
  bool all_have_settled() const;
  bool heap_is_held();

  PeerTable* table_;
  Peers* peers_;
  PeerId dead_;
  std::vector<BlockId> sent_;  ///< the blocks of messages that nobody has taken yet; sorted
  bool has_begun_ = false;
  bool is_settled_ = false;
};

}  // namespace weft
