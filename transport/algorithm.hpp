#pragma once
/// Algorithm: how the chips of a group carry a collective out. The one place where it is chosen.
///
/// With n chips and N bytes of the larger of source and destination, loads and stores are per chip:
///
///   algorithm  for                          syncs  loads     stores
///   signal     barrier, or no bytes at all    1    0         0
///   mailbox    all_reduce, N <= 16 KiB        1    N + n*N   2*N
///   push       all_reduce                     2    N         N
///   pull       all others                     2    N         <= N
///
/// mailbox: before the sync, copies into its own mailbox; after it, reduces all mailboxes into its
/// destination. Mailboxes alternate by the parity of the epoch, so no sync at the end.
/// push: chip r reduces slice r of all sources and stores it into all destinations (pulling back
/// is slower).
/// pull: each chip reads what it needs from the others' sources; the sync at the end frees them.

#include <cstddef>
#include <cstdint>
#include <span>

#include <weft/transport/collective_call.hpp>

namespace weft {

enum class Algorithm : std::uint8_t { signal, mailbox, push, pull };

Algorithm choose_algorithm(const CollectiveCall& call, int group_size);
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

}  // namespace weft
