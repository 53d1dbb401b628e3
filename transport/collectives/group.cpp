#include "transport/collectives/group.hpp"

#include "spmd/mesh/hybrid_mesh.hpp"

namespace weft {
namespace {

/// A host's memory counts the atoms within the host only, from 1 on.
std::uint16_t mask_on_host(const Mesh& mesh, AtomList atoms) {
  unsigned mask = 0;
  unsigned next = 2;
  for (int atom = 1; atom <= mesh.num_atoms(); ++atom) {
    if ((mesh.dcn_atoms() >> atom & 1) != 0) continue;
    if (atoms.contains(static_cast<Atom>(atom))) mask |= next;
    next <<= 1;
  }
  return static_cast<std::uint16_t>(mask);
}

}  // namespace

Group::Group(const JobMemory& memory, const Mesh& mesh, int position, AtomList group_atoms)
    : atoms(group_atoms), mask(mask_on_host(mesh, group_atoms)) {
  index = static_cast<int>(mesh.index_in(position, atoms));
  for (const int member : mesh.group(position, atoms)) {
    const int chip = chip_on_host(mesh, member);
    GroupLine& line = memory.group_line(mask, chip);
    chips.push_back(chip);
    lines.push_back(&line);
    arenas.push_back(memory.arena(chip));
    for (std::size_t parity = 0; parity < 2; ++parity) {
      mailboxes[parity].push_back(memory.mailboxes(mask, chip) + parity * kMailboxBytes);
      line_mailboxes[parity].push_back(line.mailbox[parity]);
    }
  }
  own = lines[static_cast<std::size_t>(index)];
  first = lines[0];
  arrivals.resize(chips.size());
  for (int i = 1; i < size(); ++i) {
    const int peer = (index + i) % size();
    const auto member = static_cast<std::size_t>(peer);
    peers.push_back(peer);
    for (std::vector<std::byte*>& mailboxes_seen : line_mailboxes) {
      mailboxes_seen[member] = arrivals[member].mailbox.data();
    }
  }
}

}  // namespace weft
