// Simulates the state that the workers of a job keep, with StateKeeper, BufferPool and ArenaBuffers
// in the job's memory, called as in WorkerRuntime.

#include <cstring>
#include <map>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "tests/support/arena_pool.hpp"
#include "tests/support/recovery_world.hpp"
#include "transport/state/kept_state.hpp"

namespace weft::testing {
namespace {

constexpr std::int64_t kShardBytes = 8;
constexpr std::size_t kSlotBytes = kDirectoryBytes / kDirectorySlotCount;

}  // namespace

JobMemory& fresh_memory(const Mesh& mesh) {
  static std::map<int, JobMemory> memories;
  auto found = memories.find(mesh.size());
  if (found == memories.end()) {
    auto memory = JobMemory::anonymous(
        {.job = "", .num_chips = mesh.size(), .arena_capacity = 2 * kArenaCapacityUnit});
    for (int c = 0; c < mesh.size(); ++c) {
      memory.reserve(c, memory.buffers_offset(), kArenaCapacityUnit);
    }
    found = memories.emplace(mesh.size(), std::move(memory)).first;
  }
  JobMemory& memory = found->second;
  memory.begin_generation(0);
  for (int c = 0; c < mesh.size(); ++c) {
    StateDirectory(memory, mesh, c).keep_only(0);
    std::memset(memory.arena(c) + memory.buffers_offset(), 0, kArenaCapacityUnit);
  }
  return memory;
}

std::uint64_t& SimJob::value(int chip, std::uint64_t offset) const {
  return *reinterpret_cast<std::uint64_t*>(memory_.arena(chip) + offset);
}

std::vector<int> SimJob::chips_of(int index) const {
  std::vector<int> chips;
  for (int c = index * chips_each_; c < (index + 1) * chips_each_; ++c) chips.push_back(c);
  return chips;
}

/// Finds the state that this worker's earlier process, or other workers, have left in memory.
void SimJob::open_state(int index) {
  SimWorker& worker = workers_[static_cast<std::size_t>(index)];
  worker.tensors = {};
  take_kept(index);
  worker.pool = std::make_shared<ArenaPool>(memory_, chips_of(index), worker.keeper->taken());
  worker.keeper->hold(worker.pool);
  worker.pool->begin_step(worker.step);
  for (std::size_t k = 0; k < kSimTensors; ++k) {
    const auto& [input, type] = tensors_[k];
    worker.tensors[k] =
        std::static_pointer_cast<ArenaBuffer>(worker.keeper->take(input.name, type));
    worker.overwriters[k] = worker.keeper->overwriters(input.name, input.sharding);
    if (broken(BrokenRule::one_keeps) && !input.sharding.is_sharded()) {
      worker.overwriters[k].assign(static_cast<std::size_t>(chips_each_), true);
    }
  }
  for (const int c : chips_of(index)) {
    chips_[static_cast<std::size_t>(c)].commits.emplace(memory_, mesh_, mesh_.position_of(c),
                                                        BoardWriter(), WaitPolicy());
  }
}

void SimJob::take_kept(int index) {
  SimWorker& worker = workers_[static_cast<std::size_t>(index)];
  std::vector<int> positions;
  std::vector<std::vector<std::byte>> before;
  for (const int c : chips_of(index)) {
    positions.push_back(mesh_.position_of(c));
    const std::byte* buffers = memory_.arena(c) + memory_.buffers_offset();
    if (broken(BrokenRule::copy_of_kept))
      before.emplace_back(buffers, buffers + kArenaCapacityUnit);
  }
  try {
    const auto copy = [&](std::size_t chip, const KeptShard& from, std::uint64_t to,
                          std::size_t bytes) {
      std::memcpy(memory_.arena(mesh_.device_at(positions[chip])) + to,
                  memory_.arena(mesh_.device_at(from.position)) + from.offset, bytes);
    };
    worker.keeper =
        std::make_unique<StateKeeper>(memory_, mesh_, positions, copy, worker.step,
                                      keeps_state_ ? StateSource::host : StateSource::checkpoint);
  } catch (const Error& e) {
    violated(e.what());
  }
  for (std::size_t c = 0; c < before.size(); ++c) {
    const int chip = index * chips_each_ + static_cast<int>(c);
    std::ranges::copy(before[c], memory_.arena(chip) + memory_.buffers_offset());
  }
}

/// Expects that every chip can read the version of the step while no chip writes.
void SimJob::check_kept(std::uint64_t step) const {
  if (step == 0) return;
  try {
    const KeptState kept(memory_, mesh_, chips_each_, step);
    for (const KeptTensor& tensor : kept.tensors()) {
      const auto k = static_cast<std::size_t>(tensor.name.back() - '0');
      const int shards = tensor.sharding.is_sharded() ? mesh_.size() : 1;
      for (int position = 0; position < shards; ++position) {
        std::uint64_t found = 0;
        std::memcpy(&found, kept.shard(tensor, position), sizeof(found));
        if (found == script_.expected[step][0][k]) continue;
        violated(
            fmt::format("nobody has tensor {} of version {} for position {}", k, step, position));
      }
    }
  } catch (const Error& e) {
    violated(e.what());
  }
}

std::uint64_t& SimJob::directory_word(int index, int slot) const {
  return *reinterpret_cast<std::uint64_t*>(memory_.directory(index * chips_each_) +
                                           static_cast<std::size_t>(slot) * kSlotBytes);
}

/// Writes the state directory. Returns true if it has a new version. Until finish_directory(), the
/// new version's slot is invalid, as if the process had been killed while it wrote the slot.
bool SimJob::commit_state(int index) {
  SimWorker& worker = workers_[static_cast<std::size_t>(index)];
  if (worker.step == worker.state.started(0)->step) worker.keeper->end_first_step();
  const bool again = worker.commits == worker.step && !broken(BrokenRule::one_commit_per_step);
  worker.commits = worker.step;
  if (worker.step == 0 || again) return false;
  worker.awaits_commits = worker.keeper->write(worker.step);
  if (!worker.awaits_commits) return false;
  for (int slot = 0; slot < kDirectorySlotCount; ++slot) {
    if (directory_word(index, slot) == worker.step) worker.torn_slot = slot;
  }
  directory_word(index, worker.torn_slot) = kSimNever;
  return true;
}

void SimJob::finish_directory(int index) {
  const SimWorker& worker = workers_[static_cast<std::size_t>(index)];
  directory_word(index, worker.torn_slot) = worker.step;
}

void SimJob::end_step_of_state(SimWorker& worker) const {
  if (worker.step == worker.state.started(0)->step) worker.keeper->end_first_step();
}

/// Returns the initial values of the loop, or those of the checkpoint from which it continues.
const SimValues& SimJob::initial_values(const SimWorker& worker) const {
  return script_.expected[keeps_state_ ? 0 : worker.state.started(0)->step][0];
}

/// Writes a tensor's initial value from the host, as before the first run that uses the tensor.
void SimJob::bind(int index, std::size_t tensor) {
  SimWorker& worker = workers_[static_cast<std::size_t>(index)];
  const std::uint64_t completed = worker.runs < 2 ? 0 : worker.runs - 1;
  const std::uint64_t offset =
      worker.pool->allocate_state_for_host(kShardBytes, common_step(memory_), completed);
  worker.tensors[tensor] =
      std::make_shared<ArenaBuffer>(tensors_[tensor].type, tensors_[tensor].input.sharding,
                                    worker.pool, BlockKind::state, offset, kShardBytes);
  for (const int c : chips_of(index)) value(c, offset) = initial_values(worker)[tensor];
}

std::shared_ptr<ArenaBuffer> SimJob::update(SimWorker& worker, std::size_t tensor) const {
  const SimTensor& of = tensors_[tensor];
  const std::shared_ptr<ArenaBuffer>& now = worker.tensors[tensor];
  const ChipSet& may_overwrite = worker.overwriters[tensor];
  if (broken(BrokenRule::age_of_blocks) && !are_all(may_overwrite)) {
    const ChipSet overwriters = now->may_overwrite(may_overwrite) ? may_overwrite : ChipSet();
    if (auto next = now->take_before(kSimNever, overwriters)) {
      next->replaces(now, worker.step, overwriters);
      return next;
    }
  }
  return next_version(now, may_overwrite, worker.step,
                      {.type = of.type, .sharding = of.input.sharding, .bytes = kShardBytes},
                      worker.pool);
}

void SimJob::note_state(SimWorker& worker, std::size_t tensor) const {
  const SimTensor& of = tensors_[tensor];
  const std::size_t place =
      worker.keeper->place(of.input.name, of.type, of.input.sharding, StateKind::param);
  worker.keeper->lies_in(place, worker.tensors[tensor]);
}

}  // namespace weft::testing
