#pragma once
/// Late: finds the chips that make others wait in collectives, for `weft inspect late`.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// The times for which a chip waited, and others waited for it, since the job began. Computed from
/// the ledgers of all chips.
struct LateChip {
  int chip = -1;
  int worker = -1;
  std::uint64_t collectives = 0;
  std::uint64_t times_last = 0;
  double awaited_s = 0;  ///< sum of the times that other chips waited for this chip
  double waited_s = 0;   ///< time that this chip waited for other chips
  double share = 0;      ///< awaited_s, divided by its sum over all chips
  /// The chip's own time between collectives, minus the median of the chips in the same
  /// collectives, as far as there are events. std::nullopt if there are no chips to compare with.
  /// The number is small if the chip was late only because it had waited for others.
  std::optional<double> own_above_s{};
};

/// One collective call of a plan, over all chips.
struct LateCall {
  std::string_view text{};   ///< text of the call; "" for calls that share the last ledger entry
  std::string_view place{};  ///< place in the program; "" if unknown
  std::uint64_t calls = 0;   ///< number of calls by all chips
  double waited_s = 0;
  /// Quantiles of the waits. Each is the upper bound of the histogram's bucket that contains the
  /// quantile; std::nullopt if this bucket has no upper bound.
  std::optional<double> p50_s{};
  std::optional<double> p99_s{};
  int last_chip = -1;            ///< the chip that came last most often; -1: no chip came last
  std::uint64_t times_last = 0;  ///< how often last_chip came last
};

struct Late {
  std::vector<LateChip> chips{};  ///< the chip for which others waited longest comes first
  std::vector<LateCall> calls{};  ///< the call with the longest waits comes first
  double events_s = 0;            ///< time that the events cover; 0 without events
  std::string remark{};           ///< why there are no results; "" if there are results
};

/// Finds the late chips of a job. The texts in the result are valid as long as the texts of the
/// snapshot.
Late find_late(const Snapshot& job);

std::string late_text(const Snapshot& job);
/// Returns a grid of the chips in the mesh. Each cell is the chip's share, in percent, of all
/// waits. `colours` marks shares of half and more by ANSI colors.
std::string late_mesh_text(const Snapshot& job, bool colours);
std::string late_json(const Snapshot& job);  ///< schema weft.late/1

}  // namespace weft
