#include "transport/collectives/group.hpp"

#include <weft/error.hpp>

namespace weft {
namespace {

void require_atoms(AtomList atoms, const Mesh& mesh) {
  for (int i = 0; i < atoms.size(); ++i) {
    if (atoms[i] == 0 || atoms[i] > mesh.num_atoms() || atoms.prefix(i).contains(atoms[i])) {
      fail(Errc::invalid_argument,
           "collective over atoms {:#x}: expected distinct atoms of 1 to {}", atoms.bits(),
           mesh.num_atoms());
    }
  }
}

}  // namespace

Group::Group(const JobMemory& memory, const Mesh& mesh, int position, AtomList group_atoms)
    : atoms(group_atoms) {
  require_atoms(atoms, mesh);
  index = static_cast<int>(mesh.index_in(position, atoms));
  for (const int member : mesh.group(position, atoms)) {
    const int chip = mesh.device_at(member);
    GroupLine& line = memory.group_line(atoms.mask(), chip);
    chips.push_back(chip);
    lines.push_back(&line);
    arenas.push_back(memory.arena(chip));
    for (std::size_t parity = 0; parity < 2; ++parity) {
      mailboxes[parity].push_back(memory.mailboxes(atoms.mask(), chip) + parity * kMailboxBytes);
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
