#include "transport/resume/dead_memory.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include <weft/tensor/error.hpp>

#include "spmd/mesh/box.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "transport/board/board.hpp"
#include "transport/resume/command_journal.hpp"
#include "transport/state/commits.hpp"
#include "transport/state/state_directory.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/part_writer.hpp"

namespace weft {
namespace {

JobMemory open_memory(const std::string& memory_id, const RunCard& card) {
  JobMemory memory = JobMemory::open(memory_id);
  if (memory.num_chips() != card.mesh.size() / card.num_hosts) {
    fail(Errc::corrupt, "job {}: its run card says {} chips on each of {} hosts, its memory has {}",
         memory_id, card.mesh.size() / card.num_hosts, card.num_hosts, memory.num_chips());
  }
  return memory;
}

/// Returns the commands of the job's journal. Whether a command was read, and at which step, comes
/// from the job's state: `read` has its marks.
std::vector<StoredCommand> commands_of(const std::string& run_dir,
                                       const std::vector<CommandMark>& read) {
  std::vector<StoredCommand> commands = read_journal(run_dir);
  for (StoredCommand& command : commands) {
    command.is_read = !read.empty() && command.number <= read.back().number;
    const auto mark = std::ranges::find(read, command.number, &CommandMark::number);
    if (mark != read.end()) command.step = mark->step;
  }
  // If somebody has changed the journal, the rescue continues without commands, because the state
  // is worth more.
  return commands_fault(commands) ? std::vector<StoredCommand>() : commands;
}

}  // namespace

DeadMemory::DeadMemory(const std::string& memory_id, RunCard card)
    : card_(std::move(card)),
      mesh_(card_.num_hosts == 1 ? in_one_memory(card_.mesh) : card_.mesh),
      memory_(open_memory(memory_id, card_)),
      run_dir_(Board::open(memory_id, true).header().run_dir) {}

std::uint64_t DeadMemory::step() const { return common_step(memory_); }

std::vector<std::uint64_t> DeadMemory::steps() {
  const std::uint64_t last = step();
  std::uint64_t first = last;
  if (card_.num_hosts > 1) first = std::max(far_step(memory_), card_.begin_step + 1);
  // A directory has at most kDirectorySlotCount versions.
  if (last - std::min(first, last) >= kDirectorySlotCount) first = last - kDirectorySlotCount + 1;
  std::vector<std::uint64_t> steps;
  for (std::uint64_t step = first; step < last; ++step) {
    if (has_table(step)) steps.push_back(step);
  }
  steps.push_back(last);
  return steps;
}

bool DeadMemory::has_table(std::uint64_t step) {
  const int chips_per_worker = mesh_.size() / card_.num_workers;
  for (int chip = 0; chip < memory_.num_chips(); chip += chips_per_worker) {
    if (!StateDirectory(memory_, mesh_, chip).read(step)) return false;
  }
  return true;
}

bool DeadMemory::is_divided() {
  const KeptState kept = state(step());
  return std::ranges::any_of(kept.tensors(), [&](const KeptTensor& tensor) {
    return ((tensor.sharding.used() | tensor.sharding.unreduced) & mesh_.dcn_atoms()) != 0;
  });
}

/// Returns whether this host writes the shard of the chip at `position`. If several hosts write and
/// have the same shard, only the first of them writes it.
bool DeadMemory::writes(const Sharding& sharding, int position, bool is_alone) const {
  if (card_.num_hosts == 1) return true;
  if (host_of(mesh_, position) != card_.host) return false;
  const int apart = sharding.used() | sharding.unreduced;
  const auto alike = static_cast<AtomMask>(mesh_.dcn_atoms() & ~apart);
  return is_alone || mesh_.index_in(position, mesh_.list(alike)) == 0;
}

DeadMemory::Part DeadMemory::write_part(FileSystem& files, const std::string& folder,
                                        std::uint64_t step, int part, int num_parts) {
  const KeptState kept = state(step);
  Part written{.table = {.step = step,
                         .mesh_shape = card_.mesh.shape(),
                         .axis_names = card_.mesh.axis_names(),
                         .device_ids = card_.mesh.device_ids(),
                         .seed = card_.seed,
                         .loaders = kept.loaders(0),
                         .partial = true,
                         .rescued_from = run_dir_,
                         .commands = commands_of(run_dir_, kept.commands(0)),
                         .dcn_shape = dcn_shape(card_.mesh)}};
  if (card_.has_copies) written.table.save_id = fmt::format("rescue-{}-{}", card_.job, step);
  std::vector<SourceShard> shards;
  std::vector<std::size_t> tensors;  // indices of tensors, by shard
  for (const KeptTensor& tensor : kept.tensors()) {
    for (int position = 0; position < mesh_.size(); ++position) {
      if (keeper_of(tensor.name, tensor.sharding, mesh_, position) != position) continue;
      if (!writes(tensor.sharding, position, num_parts == 1)) continue;
      const PlacedBox placed = shard_box(tensor.type.shape, tensor.sharding, mesh_, position);
      if (placed.box.dims.num_elements() == 0) continue;  // the shard is empty, or only padding
      shards.push_back({.header = {.name = tensor.name,
                                   .type = tensor.type,
                                   .offsets = placed.box.offsets,
                                   .dims = placed.box.dims,
                                   .mesh_coords = mesh_.coords(position),
                                   .step = step},
                        .elements = kept.shard(tensor, position),
                        .room = placed.room});
      tensors.push_back(written.table.tensors.size());
    }
    written.table.tensors.push_back({.name = tensor.name,
                                     .type = tensor.type,
                                     .kind = tensor.kind,
                                     .sharding = tensor.sharding});
    written.bytes += tensor.type.bytes();
  }
  for (int i = 0; i < num_parts; ++i) written.table.files.push_back(part_name(i, num_parts));
  const std::atomic<bool> never{false};
  auto stored = weft::write_part(files, folder + "/" + part_name(part, num_parts), shards,
                                 {.file = static_cast<std::uint32_t>(part)}, never);
  for (std::size_t i = 0; i < stored.size(); ++i) {
    written.table.tensors[tensors[i]].shards.push_back(std::move(stored[i]));
  }
  return written;
}

}  // namespace weft
