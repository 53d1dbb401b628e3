#pragma once
/// LaneNode: one process's part in the exchange of messages between the processes of an actor
/// system. A message goes through a lane: 64 entries in the taker's memory, with one sender and one
/// taker. Tensors and long bodies are in blocks of the sender's heap, and aren't copied.
///
/// Invariants (the models in tests/unit/transport/lanes explore all schedules of small cases, and
/// tests/fault/lanes kills processes at random instants):
/// 1. Only its owner allocates a block. The block is free if no process holds it.
/// 2. A process holds a block by one bit in the owner's ledger. It counts how often it holds the
///    block in memory of its own. To set or clear a bit twice does no harm, so the keeper can
///    clear the bits of a dead process without knowing at which instruction it died.
/// 3. A bit is set only while another process's bit is set, or by the owner for a free block. A
///    sender holds the blocks of a message until it is taken: the taker sets its bits first, and
///    then increments `head`.
/// 4. `sets` is incremented after a bit is set, and before the taker increments `head`. A reader
///    that finds all words of bits zero, between two equal values of `sets`, has missed no hold
///    that moved from a word it hadn't read yet to a word it had read. So the block is free.
/// 5. The bits of a dead process are cleared at once, except those of blocks in entries that nobody
///    has taken. These are cleared when all living processes have taken what the dead process sent.
///    The slot is given to another process only after that, and when nobody holds a block of the
///    dead process's heap.
/// 6. The taker clears a dead sender's lane before it reports the death as settled. So the entry
///    numbers of the next sender begin at 1 in an empty lane.
/// 7. No wake is lost: the sender stores `number`, sets its bit in `watched` unless it is set, and
///    then loads `asleep`; the taker stores `asleep`, and then loads `watched` and the numbers of
///    all watched lanes. All are seq_cst.
/// 8. Likewise a sender that waits for room loses no wake: it stores `sender_waits` and then loads
///    `head`; the taker stores `head` and then loads `sender_waits`.
/// 9. A sender that finds its bit in `watched` set needn't set it: a taker that clears the bit
///    looks at the lane once more afterwards, in the total order of seq_cst operations. So the
///    taker finds the new entry.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "transport/lanes/blocks.hpp"
#include "transport/lanes/lane_port.hpp"
#include "transport/lanes/lane_sender.hpp"
#include "transport/lanes/peer_table.hpp"
#include "transport/lanes/peers.hpp"

namespace weft {

/// One process's ports, senders and blocks. Thread-safe, except that only one thread at a time may
/// use a port.
class LaneNode {
 public:
  using OnMessage = std::function<void(InMessage)>;
  using OnLost = std::function<void(const LaneHeading&)>;

  /// Makes this process's shared memory. After that the keeper may mark the peer alive. `table`
  /// must outlive this object.
  LaneNode(PeerTable& table, PeerId self, const PeerMemoryOptions& options);

  PeerId self() const { return peers_.own().peer(); }
  Peers& peers() { return peers_; }
  Blocks& blocks() { return blocks_; }
  LanePort& port(std::uint32_t port) { return *ports_.at(port); }
  std::uint32_t port_count() const { return static_cast<std::uint32_t>(ports_.size()); }

  /// Returns the sender to a port of a peer, and opens it at the first call. See LaneSender.
  std::shared_ptr<LaneSender> sender(PeerId to, std::uint32_t port);

  /// Passes on the last messages of the processes that have died since the last call for this port,
  /// and then settles their deaths. Only the thread that uses the port may call this. Cheap if no
  /// process has died.
  void settle(std::uint32_t port, const OnMessage& on_message);
  /// Sets a function that settle() calls, on its thread, with the headings of this process's
  /// messages whose taker died without taking them. Call this before any settle().
  void set_on_lost(OnLost on_lost) { on_lost_ = std::move(on_lost); }
  /// Releases the blocks of all messages that other processes have taken.
  void release_taken();

 private:
  void pass_on_last_messages(std::uint32_t port, std::uint32_t slot, const OnMessage& on_message);
  void finish_settling(PeerId dead);

  PeerTable* table_;
  Peers peers_;
  Blocks blocks_;
  std::vector<std::unique_ptr<LanePort>> ports_;
  struct Seen {
    std::uint32_t deaths = 0;
    std::vector<std::uint32_t> settled;  ///< by slot: the last incarnation settled
  };
  std::vector<Seen> seen_;  ///< by port; only the port's thread uses its element
  OnLost on_lost_;
  std::mutex mutex_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::shared_ptr<LaneSender>> senders_;
  std::map<std::uint32_t, std::uint32_t> unsettled_ports_;  ///< how many, by the dead peer's slot
};

}  // namespace weft
