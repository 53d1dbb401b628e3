#pragma once
/// Group: the chips of a host that carry out a collective together, and their memory.

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

/// Another chip of a group, with a copy of its line. The copy is taken when the peer is seen to
/// have arrived. A moment later the peer may write to the line again, and each further look would
/// have to wait for it.
struct Peer {
  int member = 0;  ///< its index in the group
  GroupLine* line = nullptr;
  std::uint64_t announced = 0;
};

/// A mailbox of a line, apart from the line.
struct alignas(kLineMailboxBytes) LineMail {
  std::byte bytes[kLineMailboxBytes];
};

/// A copy of what the chip has announced in its line of a mask and put into its ring. Groups that
/// name the same atoms in another order share it. The line itself isn't read for this purpose: if a
/// peer has read a line after the owner's store, the line is away from the owner, which then waits
/// for it as for any other's.
struct GroupProgress {
  std::uint32_t epoch = 0;
  std::uint64_t messages = 0;
  std::uint64_t history = 0;  ///< a digest of all messages
  std::uint64_t room = 0;     ///< the last message for which the chip's ring certainly has room
  std::array<std::uint64_t, kSlotCount>
      recorded{};  ///< ids of the calls that the ring's records show
};

/// Publishes in the chip's line how far the chip is.
inline void publish_messages(const GroupProgress& progress, GroupLine& line) {
  line.history.store(progress.history, std::memory_order_relaxed);
  line.messages.store(progress.messages, std::memory_order_release);
}

/// The chips that differ from `position` only in `atoms`, in group order. Lists with one entry per
/// chip have the same order.
struct Group {
  Group(const JobMemory& memory, const Mesh& mesh, int position, AtomList group_atoms);

  AtomList atoms;
  std::uint16_t mask = 0;  ///< the atoms, as the host's memory numbers them
  std::shared_ptr<GroupProgress> progress;
  int index = 0;               ///< index of the chip itself
  GroupLine* own = nullptr;    ///< the chip's line
  GroupLine* first = nullptr;  ///< the first chip's line, where sleepers are counted
  std::vector<int> chips;
  std::vector<GroupLine*> lines;
  std::vector<Peer> peers;  ///< all members except the chip itself, beginning with the next
  std::vector<std::byte*> arenas;
  /// Indexed by the parity of the epoch.
  std::array<std::vector<std::byte*>, 2> mailboxes;
  /// The contents of the lines' mailboxes at this epoch: for the chip itself as it wrote them, for
  /// a peer as they were seen.
  std::vector<LineMail> mails;
  std::vector<std::byte*> mail_bytes;

  int size() const { return static_cast<int>(chips.size()); }
  GroupLine& line(int member) const { return *lines[static_cast<std::size_t>(member)]; }
  int chip(int member) const { return chips[static_cast<std::size_t>(member)]; }
};

}  // namespace weft
