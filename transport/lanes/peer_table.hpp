#pragma once
/// PeerTable: the table of the processes of an actor system, which says which of them are alive.

#include <cstdint>
#include <string>
#include <string_view>

#include "transport/lanes/lane_format.hpp"
#include "transport/memory/life_lock.hpp"
#include "transport/memory/segment.hpp"

namespace weft {

/// A slot that the process has taken itself. As long as the process lives, it holds the lock.
struct PeerClaim {
  PeerId peer{};
  LifeLock life;
};

/// The table is made by the system's keeper, a single thread of one process, which also adds and
/// marks peers. Every peer maps the table. All functions but the keeper's are thread-safe.
class PeerTable {
 public:
  /// Makes the table. `system` is 32 hex digits. Throws io if the system has a table already, or
  /// no_space.
  static PeerTable create(std::string_view system);
  /// Maps an existing table. Throws not_found, version or corrupt.
  static PeerTable open(std::string_view system);
  /// Removes the names of the table and of the memory of all peers. Returns how many it removed.
  static int remove(std::string_view system) noexcept;
  static std::string segment_name(std::string_view system);

  const std::string& system() const { return system_; }

  PeerLife life(std::uint32_t slot) const noexcept;
  bool is_alive(PeerId peer) const noexcept;
  /// Returns how often a peer has died so far.
  std::uint32_t deaths() const noexcept;

  /// Gives a free slot to a new process, which is then `joining`. Throws no_space if all
  /// kPeerCountMax slots are in use. Only the keeper calls add() and the functions up to
  /// set_host(), except claim() and give_back().
  PeerId add();
  /// Takes a free slot for the calling process, which the keeper hasn't started. The process is
  /// then `joining` until the keeper marks it. Throws as add() does.
  PeerClaim claim();
  /// Frees a claimed slot that the calling process has announced to nobody and still locks.
  void give_back(PeerId claimed) noexcept;
  /// Returns whether the process that has claimed the slot lives.
  bool is_claimed(std::uint32_t slot) const;
  void mark(std::uint32_t slot, PeerState state) noexcept;
  /// Enters a process that the keeper of another host has added, with its present state.
  void put(PeerId peer, PeerState state, PeerRole role, std::uint32_t host) noexcept;
  void set_host(std::uint32_t slot, std::uint32_t host) noexcept;

  /// Sets the process's pid. The process itself calls this once it has joined.
  void set_pid(std::uint32_t slot, std::int32_t pid) noexcept;
  /// Returns the process's pid, or 0 if the process of the slot hasn't made its memory.
  std::int32_t pid(std::uint32_t slot) const noexcept;
  PeerRole role(std::uint32_t slot) const noexcept;
  /// Returns the number of the host on which the process runs.
  std::uint32_t host(std::uint32_t slot) const noexcept;
  /// Marks the calling process, which has attached, as `leaving`.
  void set_leaving(std::uint32_t slot) noexcept;
  /// Marks that `by` has taken all messages that `dead` sent it, and has forgotten the messages
  /// that it sent to `dead`.
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
