#pragma once
/// AttachedPeers: the processes of other programs that have attached to an actor system.

#include <poll.h>

#include <cstdint>
#include <map>
#include <vector>

#include "actors/launch/process_fd.hpp"
#include "transport/lanes/peer_table.hpp"

namespace weft {

/// Sees when they end or detach. Only the keeper's thread uses it.
class AttachedPeers {
 public:
  /// `table` must outlive this object.
  explicit AttachedPeers(const PeerTable& table) : table_(&table) {}

  /// Adds a process that has made its memory. Returns false if it has ended meanwhile, or didn't
  /// claim its slot.
  bool add(PeerId peer);
  /// The process is about to detach: take_ended() looks for that at each call.
  void expect_end(PeerId peer);
  bool expects_end() const;
  std::vector<PeerId> all() const;

  /// Appends what poll() must wait for.
  void add_to(std::vector<pollfd>& waits) const;
  /// Forgets the processes that have ended or detached, and returns them. `waits` are those of
  /// add_to().
  std::vector<PeerId> take_ended(const pollfd* waits);

 private:
  struct Attached {
    PeerId peer{};
    ProcessFd process;
    bool expects_end = false;
  };

  bool is_alive(const Attached& attached) const;

  const PeerTable* table_;
  std::map<std::uint32_t, Attached> peers_;  ///< by slot
};

}  // namespace weft
