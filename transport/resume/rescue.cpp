#include "transport/resume/rescue.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include <weft/tensor/error.hpp>

#include "data/files/file_bytes.hpp"
#include "data/remote/storages.hpp"
#include "spmd/mesh/box.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "transport/board/board.hpp"
#include "transport/job/job_folder.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/job/remains.hpp"
#include "transport/resume/command_journal.hpp"
#include "transport/resume/rescue_note.hpp"
#include "transport/state/commits.hpp"
#include "transport/state/kept_state.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/part_writer.hpp"

namespace weft {
namespace {

RunCard read_card(const std::string& root, const std::string& job) {
  return decode_run_card(read_file_bytes(run_card_in(root, job), kRunCardBytesMax));
}

/// Takes the job's lock, which keeps the job from being swept, and shows that the trainer is dead.
JobLock hold(const DeadJob& dead) {
  JobLock lock = JobLock::try_take(dead.root, dead.job);
  if (!lock)
    fail(Errc::unavailable, "job {} is alive, or another process is rescuing it", dead.job);
  return lock;
}

JobMemory open_memory(const std::string& job, const RunCard& card) {
  JobMemory memory = JobMemory::open(job);
  if (memory.num_chips() != card.mesh.size()) {
    fail(Errc::corrupt, "job {}: its run card says {} chips, its memory has {}", job,
         card.mesh.size(), memory.num_chips());
  }
  return memory;
}

DeadJob dead_job_of(const JobRemains& remains) {
  if (remains.life != JobLife::dead && remains.life != JobLife::kept) {
    fail(Errc::unavailable, "job {} is {}: {}", remains.job, to_string(remains.life), remains.why);
  }
  const auto has_card = [&](const std::string& root) {
    return ::access(run_card_in(root, remains.job).c_str(), F_OK) == 0;
  };
  const auto root = std::ranges::find_if(remains.roots, has_card);
  if (root == remains.roots.end()) {
    fail(Errc::not_found,
         "job {} has no run card, because it was not to keep its state after its end: "
         "run.failure.max_failures = 0 and run.keep_for_rescue_s = 0",
         remains.job);
  }
  const RunCard card = read_card(*root, remains.job);
  return {.job = remains.job,
          .root = *root,
          .card = card,
          .step = common_step(open_memory(remains.job, card))};
}

/// A checkpoint that is being made. Each shard in the arenas is stored only once.
struct Part {
  CheckpointManifest manifest{};
  std::vector<SourceShard> shards{};
  std::vector<std::size_t> tensors{};  ///< by shard: index of its tensor
};

/// Returns the commands of the job, of which its state knows those up to the last mark.
std::vector<StoredCommand> commands_of(const std::string& run_dir,
                                       const std::vector<CommandMark>& read) {
  std::vector<StoredCommand> commands = read_journal(run_dir);
  for (StoredCommand& command : commands) {
    command.is_read = !read.empty() && command.number <= read.back().number;
    const auto mark = std::ranges::find(read, command.number, &CommandMark::number);
    if (mark != read.end()) command.step = mark->step;
  }
  // The state is worth more than the commands of a journal that somebody has changed.
  return commands_fault(commands) ? std::vector<StoredCommand>() : commands;
}

void add(Part& part, const KeptTensor& tensor, const KeptState& state, const Mesh& mesh) {
  for (int position = 0; position < mesh.size(); ++position) {
    if (keeper_of(tensor.name, tensor.sharding, mesh, position) != position) continue;
    const PlacedBox placed = shard_box(tensor.type.shape, tensor.sharding, mesh, position);
    if (placed.box.dims.num_elements() == 0) continue;  // empty, or only padding
    part.shards.push_back({.header = {.name = tensor.name,
                                      .type = tensor.type,
                                      .offsets = placed.box.offsets,
                                      .dims = placed.box.dims,
                                      .mesh_coords = mesh.coords(position),
                                      .step = part.manifest.step},
                           .elements = state.shard(tensor, position),
                           .room = placed.room});
    part.tensors.push_back(part.manifest.tensors.size());
  }
  part.manifest.tensors.push_back(
      {.name = tensor.name, .type = tensor.type, .kind = tensor.kind, .sharding = tensor.sharding});
}

std::string write(Part part, const std::string& folder, const std::string& owner) {
  FileSystem& files = posix_file_system();
  const std::atomic<bool> never{false};
  // An earlier rescue that was killed may have left an unfinished folder of this name.
  remove_unfinished(files, folder);
  const std::string unfinished =
      begin_checkpoint(files, folder, part.manifest.step, owner, part.manifest.step);
  const std::string& name = part.manifest.files.emplace_back(part_name(0, 1));
  auto stored = write_part(files, unfinished + "/" + name, part.shards, {}, never);
  for (std::size_t i = 0; i < stored.size(); ++i) {
    part.manifest.tensors[part.tensors[i]].shards.push_back(std::move(stored[i]));
  }
  return commit_checkpoint(files, folder, unfinished, part.manifest);
}

}  // namespace

std::vector<DeadJob> list_dead_jobs() {
  std::vector<DeadJob> all;
  for (const JobRemains& remains : find_remains()) {
    try {
      DeadJob dead = dead_job_of(remains);
      if (dead.has_steps()) all.push_back(std::move(dead));
    } catch (const Error&) {
      // The job isn't dead, or has nothing to rescue.
    }
  }
  return all;
}

DeadJob find_dead_job(std::string_view job) {
  const std::vector<JobRemains> all = find_remains();
  const auto found = std::ranges::find(all, job, &JobRemains::job);
  if (found == all.end()) {
    fail(Errc::not_found,
         "nothing of job {} is in memory: `weft rescue --list` shows the jobs that can be saved",
         job);
  }
  return dead_job_of(*found);
}

Rescued rescue(const DeadJob& dead, const std::string& folder) {
  const RunCard& card = dead.card;
  if (!dead.has_steps()) {
    fail(Errc::not_found,
         "job {} began at step {} and ended before all its chips had completed one step", dead.job,
         card.begin_step);
  }
  const JobLock lock = hold(dead);
  JobMemory memory = open_memory(dead.job, card);
  const std::uint64_t step = dead.step;
  const std::string run_dir = Board::open(dead.job, true).header().run_dir;
  const Mesh mesh = in_one_memory(card.mesh);
  const KeptState state(memory, mesh, mesh.size() / card.num_workers, step);
  Part part{.manifest = {.step = step,
                         .mesh_shape = card.mesh.shape(),
                         .axis_names = card.mesh.axis_names(),
                         .device_ids = card.mesh.device_ids(),
                         .seed = card.seed,
                         .loaders = state.loaders(0),
                         .partial = true,
                         .rescued_from = run_dir,
                         .commands = commands_of(run_dir, state.commands(0)),
                         .dcn_shape = dcn_shape(card.mesh)}};
  Rescued rescued{.step = step, .num_tensors = state.tensors().size()};
  for (const KeptTensor& tensor : state.tensors()) {
    add(part, tensor, state, mesh);
    rescued.bytes += tensor.type.bytes();
  }
  const std::string to = folder.empty() ? card.checkpoints : without_last_slash(folder);
  const CheckpointLock folder_lock(to, fmt::format("weft rescue (pid {})", ::getpid()));
  const auto there = list_checkpoints(to);
  if (!there.empty() && there.back().step >= step) {
    fail(Errc::invalid_argument,
         "job {} had reached step {}, but {} has a checkpoint of step {} already: give another "
         "folder",
         dead.job, step, to, there.back().step);
  }
  rescued.path = write(std::move(part), to, dead.job);
  write_rescue_note(rescue_note_in(run_dir), {.step = step, .path = rescued.path});
  return rescued;
}

}  // namespace weft
