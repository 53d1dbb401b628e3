#pragma once
/// Group: the chips of a host that carry a collective out together, and where their memory is.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <weft/mesh.hpp>

#include "transport/job/control_format.hpp"
#include "transport/job/job_memory.hpp"

namespace weft {

/// Another chip of a group, and what was seen of its line when it had arrived, read at once: a
/// moment later the peer may be writing to the line again, and each look at it would be waited for.
struct Peer {
  int member = 0;  ///< its index in the group
  GroupLine* line = nullptr;
  std::uint64_t announced = 0;
};

/// A mailbox of a line, apart from the line.
struct alignas(kLineMailboxBytes) LineMail {
  std::byte bytes[kLineMailboxBytes];
};

/// What the chip itself has announced in its line of a mask, and put into its ring. Groups that
/// name the same atoms in another order share it. The line isn't read for that: a line that a peer
/// has read after its owner's store is away from the owner, who waits for it as for any other's.
struct GroupProgress {
  std::uint32_t epoch = 0;
  std::uint64_t messages = 0;
  std::uint64_t history = 0;  ///< of all messages
  std::uint64_t room = 0;     ///< the last message for which the chip's ring is known to have room
  std::array<std::uint64_t, kSlotCount>
      recorded{};  ///< id of the call that the ring's record shows
};

/// Says in the chip's line how far it is.
inline void publish_messages(const GroupProgress& progress, GroupLine& line) {
  line.history.store(progress.history, std::memory_order_relaxed);
  line.messages.store(progress.messages, std::memory_order_release);
}

/// The chips that differ from `position` only in `atoms`, in group order; what is listed per chip
/// is in that order too.
struct Group {
  Group(const JobMemory& memory, const Mesh& mesh, int position, AtomList group_atoms);

  AtomList atoms;
  std::uint16_t mask = 0;  ///< of the atoms, as the host's memory numbers them
  std::shared_ptr<GroupProgress> progress;
  int index = 0;               ///< of the chip itself
  GroupLine* own = nullptr;    ///< the chip's line
  GroupLine* first = nullptr;  ///< of the first chip: where sleepers are counted
  std::vector<int> chips;
  std::vector<GroupLine*> lines;
  std::vector<Peer> peers;  ///< members but the chip itself, from the next on
  std::vector<std::byte*> arenas;
  /// By the parity of the epoch.
  std::array<std::vector<std::byte*>, 2> mailboxes;
  /// What is in the mailboxes of the lines at this epoch: of the chip itself, as it put it there,
  /// of a peer, as it was seen.
  std::vector<LineMail> mails;
  std::vector<std::byte*> mail_bytes;

  int size() const { return static_cast<int>(chips.size()); }
  GroupLine& line(int member) const { return *lines[static_cast<std::size_t>(member)]; }
  int chip(int member) const { return chips[static_cast<std::size_t>(member)]; }
};

}  // namespace weft
