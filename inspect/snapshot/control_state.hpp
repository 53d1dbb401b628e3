#pragma once
/// What a job's control segment says at a moment; see transport/job/control_format.hpp.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <weft/atom.hpp>

#include "transport/collectives/call_record.hpp"

namespace weft {

/// How far a chip is in the messages of a group; see GroupLine.
struct ChipMessages {
  std::uint64_t last = 0;
  int root = 0;  ///< the chip that posts it
  bool operator==(const ChipMessages&) const = default;
};

struct ChipControl {
  std::uint64_t committed = 0;           ///< the version of the state that it has committed
  std::vector<std::uint64_t> announced;  ///< of each group: see GroupLine
  std::vector<ChipMessages> messages;    ///< of each group
  std::optional<RecordedCall> call;      ///< its last; absent: it was being written
};

struct ControlState {
  std::uint32_t generation = 0;
  std::string abort_reason;  ///< empty: the job isn't aborted
  bool crowded = false;      ///< there are more chips than cores
  std::vector<ChipControl> chips;

  /// How many syncs of the group of `atoms` the chip has announced.
  std::uint32_t epoch(int chip, AtomMask atoms) const;
  /// Whether chip `a` is at an earlier sync of the group than chip `b`.
  bool is_behind(int a, int b, AtomMask atoms) const;
  /// Whether chip `a`, at a message of the group, waits for chip `b`: a reader for the root, a root
  /// for readers that leave it no room.
  bool awaits_message(int a, int b, AtomMask atoms) const;
  std::uint64_t common_step() const;
};

/// Of the bytes of a control segment, or of a file that has them. Throws version or corrupt; every
/// size is checked against the number of bytes. The words of a live job are read while they change:
/// each for itself is right.
ControlState read_control_state(std::span<const std::byte> bytes);

}  // namespace weft
