#include "transport/collectives/group.hpp"

#include "spmd/mesh/hybrid_mesh.hpp"

namespace weft {

Group::Group(const JobMemory& memory, const Mesh& mesh, int position, AtomList group_atoms)
    : atoms(group_atoms), mask(mask_on_host(mesh, group_atoms.mask())) {
  index = static_cast<int>(mesh.index_in(position, atoms));
  for (const int member : mesh.group(position, atoms)) {
    const int chip = chip_on_host(mesh, member);
    GroupLine& line = memory.group_line(mask, chip);
    chips.push_back(chip);
    devices.push_back(mesh.device_at(member));
    lines.push_back(&line);
    arenas.push_back(memory.arena(chip));
    for (std::size_t parity = 0; parity < 2; ++parity) {
      mailboxes[parity].push_back(memory.mailboxes(mask, chip) + parity * kMailboxBytes);
    }
  }
  own = lines[static_cast<std::size_t>(index)];
  first = lines[0];
  progress = std::make_shared<GroupProgress>(
      GroupProgress{.epoch = epoch_of(own->announced.load(std::memory_order_relaxed)),
                    .messages = own->messages.load(std::memory_order_relaxed),
                    .history = own->history.load(std::memory_order_relaxed)});
  for (int i = 1; i < size(); ++i) {
    const int member = (index + i) % size();
    peers.push_back({.member = member, .line = &line(member)});
  }
  mails.resize(chips.size());
  for (LineMail& mail : mails) mail_bytes.push_back(mail.bytes);
}

}  // namespace weft
