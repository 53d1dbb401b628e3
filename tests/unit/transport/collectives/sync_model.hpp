#pragma once
/// Models the syncs of shared_memory_tier.cpp as programs of atomic steps, one for each chip of a
/// group.
///
/// A store that announces stays in its chip's store buffer until the buffer is drained, at any time
/// or by the heavy fence of another chip. Stores to an arena or a mailbox are visible at once. Each
/// access is one step: if no sync orders a read and a write, some schedule has the write first, and
/// the read finds an unexpected value. Only a wake ends a sleep, so a missing wake is found.

#include <cstdint>
#include <vector>

#include "tests/support/interleavings.hpp"
#include "transport/collectives/algorithm.hpp"

namespace weft::testing {

enum class SyncMutant {
  none,
  awaits_one_peer,
  has_one_mailbox,
  announces_first,  ///< announces before it fills its mailbox
  has_no_exit_sync,
  compares_last,
  goes_on_after_divergence,
  sleeps_unseen,     ///< doesn't look again after it is counted as a sleeper
  has_no_fence,      ///< has no fence before it looks again
  reads_woken_last,  ///< reads the wake count only after it has looked again
};

/// A collective as a chip calls it. Two calls are equal if their `name` is.
struct SyncCall {
  Algorithm algorithm = Algorithm::signal;
  bool in_lines = false;
  std::uint8_t name = 0;

  /// operand() and result() are what every chip's arena contains before and after call `number`.
  /// push and mailbox model an all_reduce; pull reads a part of the next chip's operand.
  std::uint8_t operand(std::uint8_t number) const {
    return static_cast<std::uint8_t>(4 * (number + 1) + 2 * name);
  }
  std::uint8_t result(std::uint8_t number) const {
    const bool reduces = algorithm == Algorithm::push || algorithm == Algorithm::mailbox;
    return static_cast<std::uint8_t>(operand(number) + (reduces ? 1 : 0));
  }
};

struct SyncCase {
  std::vector<std::vector<SyncCall>> calls;  ///< the calls of each of up to three chips
  SyncMutant mutant = SyncMutant::none;
  std::uint8_t dead_sleepers = 0;  ///< chips killed in their sleep, still counted as sleepers
};

enum class SyncEnd : std::uint8_t { all_done, all_noticed_divergence };

/// Explores every schedule of the case; each must reach `end`.
Exploration explore_syncs(const SyncCase& which, SyncEnd end);

}  // namespace weft::testing
