#pragma once
/// ControlState: the contents of a job's control segment at one moment; see
/// transport/job/control_format.hpp.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <weft/sharding/atom.hpp>

#include "transport/collectives/call_record.hpp"

namespace weft {

/// A chip's progress in the messages of a group; see GroupLine.
struct ChipMessages {
  std::uint64_t last = 0;
  int root = 0;  ///< the chip that posts the message
  bool operator==(const ChipMessages&) const = default;
};

struct ChipControl {
  std::uint64_t committed = 0;           ///< version of the state that the chip has committed last
  std::vector<std::uint64_t> announced;  ///< GroupLine::announced, by group
  std::vector<ChipMessages> messages;    ///< by group
  std::optional<RecordedCall> call;      ///< the chip's last call; absent while the chip writes it
};

struct ControlState {
  std::uint32_t generation = 0;
  std::string abort_reason;  ///< empty if the job isn't aborted
  bool crowded = false;      ///< whether there are more chips than cores
  std::vector<ChipControl> chips;

  /// Returns whether the chip's words were read. The words of chips of another host may be unknown.
  bool knows(int chip) const;
  /// Returns the number of syncs that the chip has announced in the group of `atoms`.
  std::uint32_t epoch(int chip, AtomMask atoms) const;
  /// Returns whether chip `a` is at an earlier sync of the group than chip `b`.
  bool is_behind(int a, int b, AtomMask atoms) const;
  /// Returns whether chip `a`, at a message of the group, waits for chip `b`. A reader waits for
  /// the root. A root waits for readers that leave it no room for the message.
  bool awaits_message(int a, int b, AtomMask atoms) const;
  std::uint64_t common_step() const;  ///< common_step() of the known chips
};

/// Reads the bytes of a control segment, or of a file with such bytes. Checks every size against
/// the number of bytes. Throws version or corrupt. A live job changes the words while they are
/// read, so each word is right, but two words may be of different moments.
ControlState read_control_state(std::span<const std::byte> bytes);

}  // namespace weft
