#pragma once
/// The syncs of shared_memory_tier.cpp as programs of atomic steps, one per chip of a group.
///
/// A store that announces stays in its chip's buffer until that is drained: at any time, or by the
/// heavy fence of another chip. What is put into an arena or a mailbox is seen at once. An access
/// is one step: where no sync orders a read and a write, some schedule has the write first, and the
/// read finds a value that it doesn't expect. Only a wake ends a sleep, so that a lost one shows.

#include <cstdint>
#include <vector>

#include "tests/support/interleavings.hpp"
#include "transport/collectives/algorithm.hpp"

namespace weft::testing {

enum class SyncMutant {
  none,
  awaits_one_peer,
  has_one_mailbox,
  announces_first,  ///< and then fills its mailbox
  has_no_exit_sync,
  compares_last,
  goes_on_after_divergence,
  sleeps_unseen,     ///< doesn't look again once it is counted
  has_no_fence,      ///< before it looks again
  reads_woken_last,  ///< when it has looked again
};

/// A collective as a chip calls it. Calls of one `name` are the same.
struct SyncCall {
  Algorithm algorithm = Algorithm::signal;
  bool in_lines = false;
  std::uint8_t name = 0;

  /// What every chip's arena holds when it calls this as its `number`-th, and when it is done.
  /// push and mailbox are all_reduce; pull reads a part of the next chip's operand.
  std::uint8_t operand(std::uint8_t number) const {
    return static_cast<std::uint8_t>(4 * (number + 1) + 2 * name);
  }
  std::uint8_t result(std::uint8_t number) const {
    const bool reduces = algorithm == Algorithm::push || algorithm == Algorithm::mailbox;
    return static_cast<std::uint8_t>(operand(number) + (reduces ? 1 : 0));
  }
};

struct SyncCase {
  std::vector<std::vector<SyncCall>> calls;  ///< of every chip: up to three chips
  SyncMutant mutant = SyncMutant::none;
  std::uint8_t dead_sleepers = 0;  ///< killed in their sleep, and still counted
};

enum class SyncEnd : std::uint8_t { all_done, all_noticed_divergence };

/// Every schedule of the case, each of which has to come to `end`.
Exploration explore_syncs(const SyncCase& which, SyncEnd end);

}  // namespace weft::testing
