#pragma once
/// Group: the chips of a host that carry a collective out together, and where their memory is.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <weft/mesh.hpp>

#include "transport/job/control_format.hpp"
#include "transport/job/job_memory.hpp"

namespace weft {

/// What a chip saw of a peer's line when the peer had arrived, read at once: a moment later the
/// peer may be writing to the line again, and each look at it would be waited for.
struct Arrival {
  std::uint64_t announced = 0;
  std::array<std::byte, kLineMailboxBytes> mailbox{};
};

/// The chips that differ from `position` only in `atoms`, in group order; what is listed per chip
/// is in that order too.
struct Group {
  Group(const JobMemory& memory, const Mesh& mesh, int position, AtomList group_atoms);

  AtomList atoms;
  std::uint16_t mask = 0;      ///< of the atoms, as the host's memory numbers them
  int index = 0;               ///< of the chip itself
  GroupLine* own = nullptr;    ///< the chip's line
  GroupLine* first = nullptr;  ///< of the first chip: where sleepers are counted
  std::vector<int> chips;
  std::vector<GroupLine*> lines;
  std::vector<Arrival> arrivals;
  std::vector<int> peers;  ///< members but the chip itself, from the next on
  std::vector<std::byte*> arenas;
  /// By the parity of the epoch.
  std::array<std::vector<std::byte*>, 2> mailboxes;
  std::array<std::vector<std::byte*>, 2> line_mailboxes;  ///< the peers': of their arrivals

  int size() const { return static_cast<int>(chips.size()); }
  GroupLine& line(int member) const { return *lines[static_cast<std::size_t>(member)]; }
  int chip(int member) const { return chips[static_cast<std::size_t>(member)]; }
};

}  // namespace weft
