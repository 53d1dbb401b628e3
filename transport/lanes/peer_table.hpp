#pragma once
/// PeerTable: the processes of an actor system, and which of them are alive.

#include <cstdint>
#include <string>
#include <string_view>

#include "transport/lanes/lane_format.hpp"
#include "transport/memory/life_lock.hpp"
#include "transport/memory/segment.hpp"

namespace weft {

/// A slot that its process has taken itself. The lock says whether that process lives.
struct PeerClaim {
  PeerId peer{};
  LifeLock life;
};

/// The system's keeper, a single thread of one process, makes the table, adds peers and marks them.
/// Every peer maps the table. All functions but the keeper's are thread-safe.
class PeerTable {
 public:
  /// `system` is 32 hex digits. Throws io if the system has a table, no_space.
  static PeerTable create(std::string_view system);
  /// Throws not_found, version or corrupt.
  static PeerTable open(std::string_view system);
  /// Removes the names of the table and of the memory of all peers. Returns their number.
  static int remove(std::string_view system) noexcept;
  static std::string segment_name(std::string_view system);

  const std::string& system() const { return system_; }

  PeerLife life(std::uint32_t slot) const noexcept;
  bool is_alive(PeerId peer) const noexcept;
  /// Returns how many peers have died so far.
  std::uint32_t deaths() const noexcept;

  /// The following are the keeper's, but for claim(). add() gives a free slot to a new process,
  /// which is then `joining`. Throws no_space if all kPeerCountMax slots are in use.
  PeerId add();
  /// Takes a free slot for the calling process, which the keeper hasn't started. It is then
  /// `joining`, until the keeper marks it. Throws as add() does.
  PeerClaim claim();
  /// Gives back a slot whose process has told nobody of it and keeps its lock.
  void give_back(PeerId claimed) noexcept;
  /// Whether the process that has claimed the slot lives.
  bool is_claimed(std::uint32_t slot) const;
  void mark(std::uint32_t slot, PeerState state) noexcept;
  /// Gives the slot to a process that the keeper of another host has added, in its present state.
  void put(PeerId peer, PeerState state, PeerRole role, std::uint32_t host) noexcept;
  void set_host(std::uint32_t slot, std::uint32_t host) noexcept;

  /// Called by the process that has joined.
  void set_pid(std::uint32_t slot, std::int32_t pid) noexcept;
  /// Returns 0 if the process of the slot hasn't made its memory.
  std::int32_t pid(std::uint32_t slot) const noexcept;
  PeerRole role(std::uint32_t slot) const noexcept;
  /// Returns the number of the host on which the process runs.
  std::uint32_t host(std::uint32_t slot) const noexcept;
  /// Called by a process that has attached.
  void set_leaving(std::uint32_t slot) noexcept;
  /// `by` has taken all that `dead` sent it, and has forgotten what it sent to `dead`.
  void set_settled(std::uint32_t by, PeerId dead) noexcept;
  bool has_settled(std::uint32_t by, PeerId dead) const noexcept;

 private:
  PeerTable(Segment segment, std::string system);
  TableHeader& header() const { return *reinterpret_cast<TableHeader*>(segment_.data()); }
  PeerRow& row(std::uint32_t slot) const;
  bool take(std::uint32_t slot, PeerId& peer) noexcept;
  [[noreturn]] static void fail_full();

  Segment segment_;
  std::string system_;
};

}  // namespace weft
