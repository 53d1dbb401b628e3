#pragma once
/// Burial: releases what a dead process of an actor system held.

#include <cstdint>
#include <vector>

#include "transport/lanes/peer_table.hpp"
#include "transport/lanes/peers.hpp"

namespace weft {

/// The keeper makes one for each peer whose process has ended, and calls finish() until it returns
/// true. Invariant 5 of lane_node.hpp says which bits are cleared when.
class Burial {
 public:
  /// Marks the peer dead, clears the bits of blocks that nobody can take from it, and wakes all
  /// peers, so that they settle the death.
  Burial(PeerTable& table, Peers& peers, PeerId dead);

  PeerId dead() const { return dead_; }

  /// Once all living peers have settled the death, clears the remaining bits. Once also nobody
  /// holds a block of the dead process's heap, removes its memory, frees its slot and returns true.
  /// Throws io or no_space if the memory of a peer can't be mapped; it may be called again.
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
  std::vector<BlockId> sent_;  ///< in entries that nobody has taken; sorted
  bool has_begun_ = false;
  bool is_settled_ = false;
};

}  // namespace weft
