#pragma once
/// Runs collectives between chips that share no memory, over a stream socket for each pair of
/// chips.
///
/// A sync is a message to every other chip of the group. It contains the call, and the bytes that
/// the receiver's next stage reads from the sender. all_gather and broadcast run in a ring, which
/// takes as many stages as the group has chips. In all other collectives a chip fetches from all
/// chips at once.

#include <memory>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "transport/board/board.hpp"
#include "transport/collectives/schedule.hpp"
#include "transport/collectives/tier.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/memory/wait.hpp"

namespace weft::testing {

/// Connects every two of `num_chips` chips by a pair of sockets.
class SocketGrid {
 public:
  explicit SocketGrid(int num_chips);
  ~SocketGrid();
  SocketGrid(const SocketGrid&) = delete;
  SocketGrid& operator=(const SocketGrid&) = delete;

  /// Returns the non-blocking socket of `chip` in its connection to `peer`.
  int end(int chip, int peer) const {
    return ends_[static_cast<std::size_t>(chip * num_chips_ + peer)];
  }

 private:
  int num_chips_;
  std::vector<int> ends_;
};

/// Returns a schedule of all_gather or broadcast in which each chip fetches from the chip before it
/// in the group.
Schedule ring_schedule(const CollectiveCall& call, int group_size, int index);

/// Makes the tier of the chip at `position`, whose arena is in `memory`. `memory`, `mesh` and
/// `sockets` must outlive the tier.
std::unique_ptr<CollectiveTier> make_socket_tier(JobMemory& memory, const Mesh& mesh, int position,
                                                 const SocketGrid& sockets, BoardWriter board,
                                                 WaitPolicy policy);

}  // namespace weft::testing
