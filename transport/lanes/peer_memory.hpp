#pragma once
/// PeerMemory: the memory that a process of an actor system shares with the others: its ports, its
/// ledger of blocks, and its heap.

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
  std::size_t heap_bytes = std::size_t{8} << 30;  ///< only address space
  /// If true, one thread takes from all ports. Senders to any of them then ring the bell of port 0.
  bool has_one_bell = false;
};

/// Thread-safe. A process that opens the memory of another one can't write to its heap.
class PeerMemory {
 public:
  /// Makes the memory of this process. Throws invalid_argument, no_space, or io if the memory
  /// exists already.
  static PeerMemory create(std::string_view system, PeerId peer, const PeerMemoryOptions& options);
  /// Maps the memory of another process. Throws not_found, version, or corrupt if a size doesn't
  /// fit the mappings.
  static PeerMemory open(std::string_view system, PeerId peer);
  /// Removes the segments' names. Processes that have mapped them keep their mappings.
  static void remove(std::string_view system, PeerId peer) noexcept;
  /// Returns the name of the segment with the ports and the ledger.
  static std::string mail_name(std::string_view system, PeerId peer);

  PeerId peer() const { return peer_; }
  std::uint32_t port_count() const { return port_count_; }
  std::size_t heap_bytes() const { return heap_.capacity(); }

  PortHead& port(std::uint32_t port) const;
  /// Returns the port whose bell a sender to `port` rings.
  PortHead& bell_of(std::uint32_t port) const;
  /// Returns a lane that has been opened.
  Lane& lane(std::uint32_t port, std::uint32_t sender) const;
  /// Reserves the memory of the lane from slot `sender` to a port, and announces the lane to the
  /// port. Throws no_space.
  Lane& open_lane(std::uint32_t port, std::uint32_t sender);
  LedgerRow& ledger_row(std::uint32_t index) const;
  /// Returns the word with the number of a call of this process. By it a taker sees whether the
  /// caller still waits.
  std::atomic<std::uint64_t>& call(std::uint32_t index) const;
  std::byte* heap() const { return heap_.data(); }

  /// Reserves memory for another block, and publishes its row. Only the owner calls it, in the
  /// order of the indices. Throws no_space; then nothing has changed.
  void add_block(std::uint32_t index, std::size_t offset, std::size_t bytes);
  /// Returns the number of blocks, which the owner may be raising.
  std::uint32_t block_count() const;

 private:
  PeerMemory(Segment mail, Segment heap, PeerId peer, std::uint32_t port_count);

  Segment mail_;
  Segment heap_;
  PeerId peer_;
  std::uint32_t port_count_;
};

}  // namespace weft
