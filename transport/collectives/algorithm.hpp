#pragma once
/// Algorithm: how the chips of a group carry a collective out. The one place where it is chosen.
///
/// With n chips, S bytes of source and D of destination, loads and stores are per chip:
///
///   algorithm  for                         syncs  loads                      stores
///   signal     barrier, or no bytes          1    0                          0
///   mailbox    small S (choose_algorithm)    1    S + what pull would load   S + D
///   push       all_reduce, all_gather        2    S                          D
///              broadcast                     2    S/n                        D
///   pull       all others                    2    D; reduce_scatter: n*D     D
///   share      all_gather, shared            1    S                          S
///
/// mailbox: before the sync, copies its source into its own mailbox; after it, reads what it needs
/// from all mailboxes (all_reduce: n*S). Mailboxes alternate, so there is no sync at the end.
/// push: each chip stores into all destinations: its source (all_gather), or slice r of the sum
/// (all_reduce) or of the root's source (broadcast), if it is the r-th. (To store it into one's own
/// and let the others fetch it is 1.2 to 2 times slower.)
/// pull: each chip reads what it needs from the others' sources; the sync at the end frees them.
/// share: before the sync, each chip stores its part in the first chip's destination.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transport/collectives/collective_call.hpp"

namespace weft {

enum class Algorithm : std::uint8_t { signal, mailbox, push, pull, share };
std::string_view to_string(Algorithm algorithm) noexcept;

/// `crowded`: the job has more chips than cores, so that a sync is a round of the scheduler.
Algorithm choose_algorithm(const CollectiveCall& call, int group_size, bool crowded);
/// Whether prepare() has anything to do.
constexpr bool stores_before_entry(Algorithm algorithm) {
  return algorithm == Algorithm::mailbox || algorithm == Algorithm::share;
}
constexpr bool has_exit_sync(Algorithm algorithm) {
  return algorithm == Algorithm::push || algorithm == Algorithm::pull;
}

/// The memory of a group as one of its chips sees it, in group order.
struct GroupMemory {
  std::span<std::byte* const> arenas;
  std::span<std::byte* const> mailboxes;  ///< the one that this sync uses
  int index = 0;                          ///< of the chip itself
};

/// The chip's part before the entry sync, and after it.
void prepare(Algorithm algorithm, const CollectiveCall& call, const GroupMemory& group);
void perform(Algorithm algorithm, const CollectiveCall& call, const GroupMemory& group);

/// What prepare() and perform() of one chip do, as text: a line per sync and per transfer, with
/// members by their place in the group and offsets in bytes.
///
///   all_reduce, push, chip 1 of 2:
///     sync
///     reduce arena 0+1 @ 64 to arena 0+1 @ 64: 4 elements
///     sync
std::string schedule(Algorithm algorithm, const CollectiveCall& call, int group_size, int index);

}  // namespace weft
