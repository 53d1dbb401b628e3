#pragma once
/// Algorithm: how the chips of a group carry a collective out through shared memory. The one place
/// where it is chosen.
///
/// With n chips, S bytes of source and D of destination, loads and stores are per chip:
///
///   algorithm  for                         syncs  loads                      stores
///   signal     barrier, or no bytes,         1    0                          0
///              or shared in place
///   slots      broadcast, S <= 16            0    S                          S; the root: 2S
///   mailbox    small S (choose_algorithm)    1    S + what pull would load   S + D
///   push       all_reduce, all_gather        2    S                          D
///              broadcast                     2    S/n                        D
///   pull       all others                    2    D; reduce_scatter: n*D     D
///   share      all_gather, shared            1    S                          S
///
/// slots: the root stores its source into a slot of its ring and goes on; the others read it there.
/// No schedule: see slot_call.hpp.
/// mailbox: before the sync, each chip copies its source into its own mailbox; after it, it reads
/// its result from all mailboxes (all_reduce: n*S). Mailboxes alternate, so no sync ends it.
/// push: each chip stores into all destinations: its source (all_gather), or slice r of the sum
/// (all_reduce) or of the root's source (broadcast), if it is the r-th. (Storing a slice into one's
/// own destination, for the others to fetch, is 1.2 to 2 times slower.)
/// pull: each chip reads its result from the others' sources; the last sync frees the sources.
/// share: before the sync, each chip stores its part in the first chip's destination.

#include <cstdint>
#include <string_view>

#include "transport/collectives/collective_call.hpp"
#include "transport/collectives/schedule.hpp"

namespace weft {

enum class Algorithm : std::uint8_t { signal, slots, mailbox, push, pull, share };
std::string_view to_string(Algorithm algorithm) noexcept;

/// Whether a call with a source of so many bytes is carried out by `slots`.
bool is_in_slots(CollectiveKind kind, std::uint64_t bytes, int group_size);
/// `crowded`: the job has more chips than cores, so that a sync is a round of the scheduler.
Algorithm choose_algorithm(const CollectiveCall& call, int group_size, bool crowded);
/// Whether a second sync ends it.
constexpr bool has_exit_sync(Algorithm algorithm) {
  return algorithm == Algorithm::push || algorithm == Algorithm::pull;
}

/// What the chip with this index in its group does. Not for slots.
Schedule make_schedule(Algorithm algorithm, const CollectiveCall& call, int group_size, int index);

}  // namespace weft
