#pragma once
/// Algorithm: how the chips of a group carry out a collective. choose_algorithm(), for shared
/// memory, and choose_network_algorithm() choose it.
///
/// The table gives the bytes that each of n chips loads and stores, with S bytes of source and D
/// bytes of destination:
///
///   algorithm  for                         syncs  loads                      stores
///   signal     barrier, or no bytes,         1    0                          0
///              or shared in place
///   slots      broadcast, S <= 16            0    S                          S; the root: 2S
///   mailbox    small S (choose_algorithm)    1    S + the loads of pull      S + D
///   push       all_reduce, all_gather        2    S                          D
///              broadcast                     2    S/n                        D
///   pull       all others                    2    D; reduce_scatter: n*D     D
///   share      all_gather, shared            1    S                          S
///
/// slots: the root stores its source into a slot of its ring and continues; the other chips read it
/// there. This algorithm has no schedule: see slot_call.hpp.
/// mailbox: before the sync, each chip copies its source into its own mailbox. After the sync, the
/// chip reads its result from all mailboxes (all_reduce: n*S). Mailboxes alternate, so no second
/// sync is needed.
/// push: each chip stores into all destinations. It stores its source (all_gather), or, as the r-th
/// chip, slice r of the sum (all_reduce) or of the root's source (broadcast). (To store the slice
/// only into the chip's own destination, and let the other chips fetch it, is 1.2 to 2 times
/// slower.)
/// pull: each chip reads its result from the other chips' sources; the last sync frees the sources.
/// share: before the sync, each chip stores its part in the first chip's destination.
///
/// Between hosts, signal, pull and slices are used. Where a chip would load another chip's memory,
/// the other chip sends the bytes instead.
/// slices: all_reduce. The r-th chip gets slice r of all sources, and then the other slices of the
/// sum from the chips that have added them. A chip sends 2 (n-1)/n * S bytes, with pull (n-1) * S.

#include <cstdint>
#include <string_view>

#include "transport/collectives/collective_call.hpp"
#include "transport/collectives/transfer_schedule.hpp"

namespace weft {

enum class Algorithm : std::uint8_t { signal, slots, mailbox, push, pull, share, slices };
std::string_view to_string(Algorithm algorithm) noexcept;

/// Returns whether `slots` carries out a call whose source has `bytes` bytes.
bool is_in_slots(CollectiveKind kind, std::uint64_t bytes, int group_size);
/// Chooses the algorithm of a call. `crowded` means that the job has more chips than cores, so that
/// a sync takes a round of the scheduler.
Algorithm choose_algorithm(const CollectiveCall& call, int group_size, bool crowded);
/// Chooses the algorithm of a call whose chips share no memory.
Algorithm choose_network_algorithm(const CollectiveCall& call, int group_size);
/// Returns whether the algorithm ends with a second sync, after which nothing is transferred.
constexpr bool has_exit_sync(Algorithm algorithm) {
  return algorithm == Algorithm::push || algorithm == Algorithm::pull;
}

/// Returns the transfers of the chip with this index in its group. Not for `slots`.
TransferSchedule make_schedule(Algorithm algorithm, const CollectiveCall& call, int group_size,
                               int index);

}  // namespace weft
