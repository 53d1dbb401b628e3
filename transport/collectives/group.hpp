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

/// Another chip of a group, with a copy of its line. The copy is made when this chip first sees
/// that the peer has arrived, because soon afterwards the peer may write to the line again, and
/// loading the line would then take time.
struct Peer {
  int member = 0;  ///< its index in the group
  GroupLine* line = nullptr;
  std::uint64_t announced = 0;
};

/// A copy of a mailbox that is in a GroupLine.
struct alignas(kLineMailboxBytes) LineMail {
  std::byte bytes[kLineMailboxBytes];
};

/// A copy of what the chip has announced in its GroupLine and put into its ring. Groups with the
/// same atoms in another order share it. The chip reads this copy and not its own line, because
/// once a peer has read the line, any access to it means a transfer of the cache line.
struct GroupProgress {
  std::uint32_t epoch = 0;
  std::uint64_t messages = 0;
  std::uint64_t history = 0;  ///< digest of the calls with all messages
  std::uint64_t room = 0;     ///< last message for which the chip's ring is known to have room
  std::array<std::uint64_t, kSlotCount>
      recorded{};  ///< ids of the calls that the ring's records show
};

/// Publishes in the chip's line how many messages the chip has passed.
inline void publish_messages(const GroupProgress& progress, GroupLine& line) {
  line.history.store(progress.history, std::memory_order_relaxed);
  line.messages.store(progress.messages, std::memory_order_release);
}

/// The chips that differ from the chip at `position` only in `group_atoms`, in group order. Lists
/// with one entry per chip are in the same order.
struct Group {
  Group(const JobMemory& memory, const Mesh& mesh, int position, AtomList group_atoms);

  AtomList atoms;
  std::uint16_t mask = 0;  ///< the atoms, as the host's memory numbers them
  std::shared_ptr<GroupProgress> progress;
  int index = 0;               ///< index of the chip itself
  GroupLine* own = nullptr;    ///< the chip's own line
  GroupLine* first = nullptr;  ///< line of the first chip, where sleepers are counted
  std::vector<int> chips;      ///< numbers in the host's memory
  std::vector<int> devices;    ///< device ids, which the board, events and errors show
  std::vector<GroupLine*> lines;
  std::vector<Peer> peers;  ///< all members except the chip itself, beginning with the next one
  std::vector<std::byte*> arenas;
  /// The members' mailboxes, by parity of the epoch.
  std::array<std::vector<std::byte*>, 2> mailboxes;
  /// The contents of the mailboxes in the members' lines at this epoch. For the chip itself they
  /// are as it wrote them, for a peer as they were read.
  std::vector<LineMail> mails;
  std::vector<std::byte*> mail_bytes;

  int size() const { return static_cast<int>(chips.size()); }
  GroupLine& line(int member) const { return *lines[static_cast<std::size_t>(member)]; }
  int chip(int member) const { return chips[static_cast<std::size_t>(member)]; }
  int device(int member) const { return devices[static_cast<std::size_t>(member)]; }
};

}  // namespace weft
