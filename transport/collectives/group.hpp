#pragma once
/// Group: the chips of a host that carry out a collective together, and the memory that they use.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "transport/job/control_format.hpp"
#include "transport/job/job_memory.hpp"

namespace weft {

/// Another chip of a group, with a copy of its line. This chip makes the copy when it first sees
/// that the peer has arrived. Soon afterwards the peer may write to the line again, and to load the
/// line would then take time.
struct Peer {
  int member = 0;  ///< the peer's index in the group
  GroupLine* line = nullptr;
  std::uint64_t announced = 0;
};

/// A copy of the mailbox in a GroupLine.
struct alignas(kLineMailboxBytes) LineMail {
  std::byte bytes[kLineMailboxBytes];
};

/// A copy of what the chip has announced in its GroupLine and put into its ring. Groups with the
/// same atoms in another order share one GroupProgress. The chip reads this copy instead of its own
/// line, because once a peer has read the line, any access to it means a transfer of the cache
/// line.
struct GroupProgress {
  std::uint32_t epoch = 0;
  std::uint64_t messages = 0;
  std::uint64_t history = 0;  ///< digest of all calls that were messages
  std::uint64_t room = 0;     ///< the last message for which the chip's ring is known to have room
  std::array<std::uint64_t, kSlotCount>
      recorded{};  ///< ids of the calls that the ring's records show
};

/// Publishes in the chip's line how many messages the chip has passed.
inline void publish_messages(const GroupProgress& progress, GroupLine& line) {
  line.history.store(progress.history, std::memory_order_relaxed);
  line.messages.store(progress.messages, std::memory_order_release);
}

/// The chips that differ from the chip at `position` only in `group_atoms`. All lists of chips and
/// members are in group order.
struct Group {
  Group(const JobMemory& memory, const Mesh& mesh, int position, AtomList group_atoms);

  AtomList atoms;
  std::uint16_t mask = 0;  ///< the atoms, as the host's memory numbers them
  std::shared_ptr<GroupProgress> progress;
  int index = 0;               ///< index of the chip itself
  GroupLine* own = nullptr;    ///< the chip's own line
  GroupLine* first = nullptr;  ///< line of the first chip, which counts the sleepers
  std::vector<int> chips;      ///< the members' numbers in the host's memory
  std::vector<int> devices;    ///< the members' device ids, for the board, events and errors
  std::vector<GroupLine*> lines;
  std::vector<Peer> peers;  ///< all members except this chip, in cyclic order from the next
  std::vector<std::byte*> arenas;
  /// The members' mailboxes: mailboxes[e % 2] for epoch e.
  std::array<std::vector<std::byte*>, 2> mailboxes;
  /// The members' mails at this epoch: this chip's as the chip wrote it, each peer's as this chip
  /// read it in the peer's line.
  std::vector<LineMail> mails;
  std::vector<std::byte*> mail_bytes;

  int size() const { return static_cast<int>(chips.size()); }
  GroupLine& line(int member) const { return *lines[static_cast<std::size_t>(member)]; }
  int chip(int member) const { return chips[static_cast<std::size_t>(member)]; }
  int device(int member) const { return devices[static_cast<std::size_t>(member)]; }
};

}  // namespace weft
