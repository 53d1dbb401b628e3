#pragma once
/// Peers: this process's mappings of the memory of the processes of an actor system.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "transport/lanes/peer_memory.hpp"
#include "transport/lanes/peer_table.hpp"

namespace weft {

/// Maps the memory of a peer when it is first used. Thread-safe.
class Peers {
 public:
  /// `table` must outlive this object.
  Peers(const PeerTable& table, PeerMemory own);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  const PeerTable& table() const { return *table_; }
  PeerMemory& own() const { return *own_; }
  std::uint32_t self() const { return own_->peer().slot; }

  /// Returns the memory of the process that has the slot now, or had it last. The result is valid
  /// until current() has been asked for two later incarnations of the slot. Throws not_found if no
  /// process has had the slot, or its memory is removed.
  PeerMemory& current(std::uint32_t slot);
  /// Returns the memory that the last current() for the slot returned. There must be one.
  PeerMemory& mapped(std::uint32_t slot) const;

 private:
  struct Mapping {
    std::unique_ptr<PeerMemory> newest;
    std::unique_ptr<PeerMemory> before;
  };

  const PeerTable* table_;
  std::unique_ptr<PeerMemory> own_;
  std::mutex mutex_;
  std::array<Mapping, kPeerCountMax> mappings_;  // guarded by mutex_
  std::array<std::atomic<PeerMemory*>, kPeerCountMax> newest_{};
};

}  // namespace weft
