#pragma once
/// Group: the chips that carry a collective out together, and where their memory is.

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <weft/spmd/mesh/mesh.hpp>
#include <weft/transport/control_format.hpp>
#include <weft/transport/job_memory.hpp>

namespace weft {

/// The chips that differ from `position` only in `atoms`, in group order; what is listed per chip
/// is in that order too.
struct Group {
  Group(const JobMemory& memory, const Mesh& mesh, int position, AtomList group_atoms);

  AtomList atoms;
  int index = 0;  ///< of the chip itself
  std::vector<int> chips;
  std::vector<GroupLine*> lines;
  std::vector<std::byte*> arenas;
  /// By the parity of the epoch.
  std::array<std::vector<std::byte*>, 2> mailboxes;
  std::array<std::vector<std::byte*>, 2> line_mailboxes;

  int size() const { return static_cast<int>(chips.size()); }
  GroupLine& line() const { return *lines[static_cast<std::size_t>(index)]; }
  GroupLine& line(int member) const { return *lines[static_cast<std::size_t>(member)]; }
  int chip(int member) const { return chips[static_cast<std::size_t>(member)]; }
};

}  // namespace weft
