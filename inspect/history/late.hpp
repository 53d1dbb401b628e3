#pragma once
/// Who makes the others wait in collectives: `weft inspect late`.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Of one chip, since the job began, as the ledgers of all chips say.
struct LateChip {
  int chip = -1;
  int worker = -1;
  std::uint64_t collectives = 0;
  std::uint64_t times_last = 0;
  double awaited_s = 0;  ///< how long the others waited for it, summed up over them
  double waited_s = 0;   ///< how long it waited for the others
  double share = 0;      ///< of all that was waited
  /// Its own time between collectives above the median of the chips that took part in the same
  /// ones, as far as events reach; absent: there are none to compare. A chip that was late because
  /// it had waited itself has little.
  std::optional<double> own_above_s{};
};

/// Of one collective call of a plan, over all chips.
struct LateCall {
  std::string_view text{};   ///< "" for calls that found no entry of their own
  std::string_view place{};  ///< in the program; "": unknown
  std::uint64_t calls = 0;   ///< by all chips
  double waited_s = 0;
  /// Of the waits, the upper bound of the histogram's bucket; absent: it has none.
  std::optional<double> p50_s{};
  std::optional<double> p99_s{};
  int last_chip = -1;  ///< that came last most often; -1: no chip ever found all others there
  std::uint64_t times_last = 0;  ///< of that chip
};

struct Late {
  std::vector<LateChip> chips{};  ///< for whom the others waited longest first
  std::vector<LateCall> calls{};  ///< in which was waited longest first
  double events_s = 0;            ///< how far back the events reach; 0: there are none
  std::string remark{};           ///< why there is nothing; "": there is
};

/// Texts live as long as the snapshot's.
Late find_late(const Snapshot& job);

std::string late_text(const Snapshot& job);
/// The chips as they stand in the mesh: for which share of all waits, in percent, each was waited
/// for. `colours`: ANSI's, for half of it and more.
std::string late_mesh_text(const Snapshot& job, bool colours);
std::string late_json(const Snapshot& job);  ///< weft.late/1

}  // namespace weft
