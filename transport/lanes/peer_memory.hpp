#pragma once
/// PeerMemory: what a process of an actor system shares with the others: its ports, its ledger of
/// blocks, and its heap.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "transport/lanes/lane_format.hpp"
#include "transport/memory/segment.hpp"

namespace weft {

struct PeerMemoryOptions {
  std::uint32_t port_count = 4;                   ///< 1 to kPortCountMax
  std::size_t heap_bytes = std::size_t{8} << 30;  ///< address space for blocks, not memory
  /// One thread takes from all ports, so senders to any of them ring at port 0.
  bool has_one_bell = false;
};

/// Thread-safe. Whoever opens the memory of another process can't write to its heap.
class PeerMemory {
 public:
  /// Throws invalid_argument, no_space, or io if the memory exists already.
  static PeerMemory create(std::string_view system, PeerId peer, const PeerMemoryOptions& options);
  /// Throws not_found, version or corrupt. Sizes are checked against the mappings.
  static PeerMemory open(std::string_view system, PeerId peer);
  /// Removes the names; mappings stay.
  static void remove(std::string_view system, PeerId peer) noexcept;
  /// Returns the name of the segment with the ports and the ledger.
  static std::string mail_name(std::string_view system, PeerId peer);

  PeerId peer() const { return peer_; }
  std::uint32_t port_count() const { return port_count_; }
  std::size_t heap_bytes() const { return heap_.capacity(); }

  PortHead& port(std::uint32_t port) const;
  /// Returns the port at which who has sent to `port` rings.
  PortHead& bell_of(std::uint32_t port) const;
  /// The lane must have been opened.
  Lane& lane(std::uint32_t port, std::uint32_t sender) const;
  /// Reserves the memory of the lane in which slot `sender` sends to a port, and makes it known to
  /// the port. Throws no_space.
  Lane& open_lane(std::uint32_t port, std::uint32_t sender);
  LedgerRow& ledger_row(std::uint32_t index) const;
  /// The number of a call of this process, by which a taker sees whether the caller still waits.
  std::atomic<std::uint64_t>& call(std::uint32_t index) const;
  std::byte* heap() const { return heap_.data(); }

  /// The owner's: reserves memory for another block, and makes its row known. Blocks are made in
  /// the order of their indices. Throws no_space; then nothing has changed.
  void add_block(std::uint32_t index, std::size_t offset, std::size_t bytes);
  /// The number of blocks. The owner may be making more.
  std::uint32_t block_count() const;

 private:
  PeerMemory(Segment mail, Segment heap, PeerId peer, std::uint32_t port_count);

  Segment mail_;
  Segment heap_;
  PeerId peer_;
  std::uint32_t port_count_;
};

}  // namespace weft
