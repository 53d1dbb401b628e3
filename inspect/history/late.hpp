#pragma once
/// Finds the chips that make others wait in collectives, for `weft inspect late`.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// The waits of one chip since the job began, from the ledgers of all chips.
struct LateChip {
  int chip = -1;
  int worker = -1;
  std::uint64_t collectives = 0;
  std::uint64_t times_last = 0;
  double awaited_s = 0;  ///< time that the other chips waited for it, summed over them
  double waited_s = 0;   ///< time that it waited for other chips
  double share = 0;      ///< its part of all waiting time
  /// The chip's own time between collectives minus the median of the chips in the same collectives,
  /// as far as events reach. Absent if there are no chips to compare. A chip that was late because
  /// it had waited itself has a small number.
  std::optional<double> own_above_s{};
};

/// One collective call of a plan, over all chips.
struct LateCall {
  std::string_view text{};   ///< "" for calls that got no ledger entry of their own
  std::string_view place{};  ///< place in the program; "" if unknown
  std::uint64_t calls = 0;   ///< number of calls by all chips
  double waited_s = 0;
  /// Quantiles of the waits, as upper bounds of the histogram's buckets; absent if the bucket has
  /// none.
  std::optional<double> p50_s{};
  std::optional<double> p99_s{};
  int last_chip = -1;            ///< the chip that came last most often; -1: no chip came last
  std::uint64_t times_last = 0;  ///< number of times that chip came last
};

struct Late {
  std::vector<LateChip> chips{};  ///< the chip that was awaited longest comes first
  std::vector<LateCall> calls{};  ///< the call with the longest waits comes first
  double events_s = 0;            ///< time that the events cover; 0 without events
  std::string remark{};           ///< reason why there are no results; "" if there are
};

/// The texts in the result are valid as long as the snapshot's.
Late find_late(const Snapshot& job);

std::string late_text(const Snapshot& job);
/// Returns a grid of the chips in the mesh. Each cell is the chip's share, in percent, of all
/// waits. `colours` marks shares of half and more by ANSI colours.
std::string late_mesh_text(const Snapshot& job, bool colours);
std::string late_json(const Snapshot& job);  ///< weft.late/1

}  // namespace weft
