#pragma once
/// AttachedPeers: the processes of other programs that have attached to an actor system.

#include <poll.h>

#include <cstdint>
#include <map>
#include <vector>

#include "actors/launch/process_fd.hpp"
#include "transport/lanes/peer_table.hpp"

namespace weft {

/// Notices when these processes end or detach. Only the keeper's thread uses it.
class AttachedPeers {
 public:
  /// `table` must outlive this object.
  explicit AttachedPeers(const PeerTable& table) : table_(&table) {}

  /// Adds a process that has made its memory. Returns false if it has ended since, or hadn't
  /// claimed its slot.
  bool add(PeerId peer);
  /// Called when the process is about to detach. From now on, each take_ended() checks whether it
  /// has.
  void expect_end(PeerId peer);
  bool expects_end() const;
  std::vector<PeerId> all() const;

  /// Appends the descriptors for which poll() must wait.
  void add_to(std::vector<pollfd>& waits) const;
  /// Removes the processes that have ended or detached, and returns them. `waits` points to the
  /// descriptors of add_to(), with poll()'s results.
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
