#pragma once
/// Models the syncs of shared_memory_tier.cpp as programs of atomic steps, one per chip of a group.
///
/// A store that announces stays in its chip's buffer until the buffer is drained: at any time, or
/// by the heavy fence of another chip. Stores to an arena or a mailbox are seen at once. An access
/// is one step: if no sync orders a read and a write, some schedule has the write first, and the
/// read finds an unexpected value. Only a wake ends a sleep, so that a lost wake shows.

#include <cstdint>
#include <vector>

#include "tests/support/interleavings.hpp"
#include "transport/collectives/algorithm.hpp"

namespace weft::testing {

enum class SyncMutant {
  none,
  awaits_one_peer,
  has_one_mailbox,
  announces_first,  ///< announces, and then fills its mailbox
  has_no_exit_sync,
  compares_last,
  goes_on_after_divergence,
  sleeps_unseen,     ///< doesn't look again after it is counted
  has_no_fence,      ///< has no fence before it looks again
  reads_woken_last,  ///< reads the wake count after it has looked again
};

/// A collective as a chip calls it. Calls with the same `name` are the same.
struct SyncCall {
  Algorithm algorithm = Algorithm::signal;
  bool in_lines = false;
  std::uint8_t name = 0;

  /// The contents of every chip's arena at its `number`-th call, and after that call.
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
  std::vector<std::vector<SyncCall>> calls;  ///< calls of every chip, of up to three chips
  SyncMutant mutant = SyncMutant::none;
  std::uint8_t dead_sleepers = 0;  ///< chips that were killed in their sleep, and are still counted
};

enum class SyncEnd : std::uint8_t { all_done, all_noticed_divergence };

/// Explores every schedule of the case; each must reach `end`.
Exploration explore_syncs(const SyncCase& which, SyncEnd end);

}  // namespace weft::testing
