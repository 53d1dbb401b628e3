#include "actors/runtime/state_keeper.hpp"

#include <algorithm>

#include <weft/tensor/error.hpp>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/passes/partition.hpp"
#include "transport/state/kept_state.hpp"

namespace weft {
namespace {

bool is_same(const std::weak_ptr<Buffer>& known, const BufferPtr& buffer) {
  return !known.owner_before(buffer) && !buffer.owner_before(known);
}

}  // namespace

StateKeeper::StateKeeper(JobMemory& memory, const Mesh& mesh, std::span<const int> positions,
                         const Copy& copy, std::uint64_t resume_step, StateSource source)
    : memory_(memory),
      mesh_(mesh),
      positions_(positions.begin(), positions.end()),
      directory_(memory, mesh, first_chip(positions.front())),
      resume_step_(resume_step) {
  if (resume_step > 0 && source == StateSource::host) take_kept(copy);
  if (resume_step > 0 && source == StateSource::worker) take_own();
  directory_.keep_only(resume_step);
}

/// Returns the first chip of the worker that drives the chip at this position. That chip's memory
/// has the worker's directory.
int StateKeeper::first_chip(int position) const {
  const int chip = chip_on_host(mesh_, position);
  return chip - chip % static_cast<int>(positions_.size());
}

ChipSet StateKeeper::overwriters(const std::string& name, const Sharding& sharding) const {
  ChipSet chips;
  for (const int position : positions_) {
    chips.push_back(keeper_of(name, sharding, mesh_, position) != position);
  }
  const bool is_none = std::ranges::find(chips, true) == chips.end();
  return is_none ? ChipSet() : chips;
}

/// Finds the kept state. Copies versions that only other chips keep to this worker's chips. The
/// other chips don't overwrite these versions until every chip, including this worker's, has
/// committed the next step.
void StateKeeper::take_kept(const Copy& copy) {
  const KeptState kept(memory_, mesh_, static_cast<int>(positions_.size()), resume_step_);
  const auto worker = static_cast<std::size_t>(first_chip(positions_.front())) / positions_.size();
  loaders_ = kept.loaders(worker);
  commands_ = kept.commands(worker);
  for (const KeptTensor& tensor : kept.tensors()) {
    const StateEntry& entry = entries_.emplace_back(StateEntry{.name = tensor.name,
                                                               .type = tensor.type,
                                                               .sharding = tensor.sharding,
                                                               .offset = tensor.offsets[worker],
                                                               .kind = tensor.kind});
    for (std::size_t chip = 0; chip < positions_.size(); ++chip) {
      const KeptShard shard = kept.place(tensor, positions_[chip]);
      if (shard.position == positions_[chip]) continue;
      copy(chip, shard, entry.offset, static_cast<std::size_t>(bytes_of(entry)));
    }
  }
}

/// Finds the state in this worker's directory alone.
void StateKeeper::take_own() {
  auto table = directory_.read(resume_step_);
  if (!table) {
    fail(Errc::corrupt, "the state of step {} was received, but the directory of chip {} lacks it",
         resume_step_, first_chip(positions_.front()));
  }
  loaders_ = std::move(table->loaders);
  commands_ = std::move(table->commands);
  entries_ = std::move(table->tensors);
}

std::int64_t StateKeeper::bytes_of(const StateEntry& entry) const {
  return chip_type(entry.type, entry.sharding, mesh_).bytes();
}

std::vector<BufferPool::Range> StateKeeper::taken() const {
  std::vector<BufferPool::Range> ranges;
  for (const StateEntry& entry : entries_) {
    ranges.push_back(BufferPool::block(entry.offset, bytes_of(entry)));
  }
  return ranges;
}

void StateKeeper::hold(const std::shared_ptr<BufferPool>& pool) {
  for (const StateEntry& entry : entries_) {
    auto buffer = std::make_shared<ArenaBuffer>(entry.type, entry.sharding, pool, BlockKind::state,
                                                entry.offset, bytes_of(entry));
    places_.emplace(entry.name, buffers_.size());
    buffers_.push_back(buffer);
    found_.emplace(entry.name, std::move(buffer));
  }
}

BufferPtr StateKeeper::take(const std::string& name, const TensorType& type) {
  const auto found = found_.find(name);
  if (found == found_.end() || found->second.use_count() > 1) return nullptr;
  if (found->second->type() != type) {
    fail(Errc::invalid_argument,
         "'{}' is {}, but the {} steps that were taken before a worker was lost left it as {}: "
         "a loop that continues at ctx.step() must make the same parameters as before",
         name, type.to_string(), resume_step_, found->second->type().to_string());
  }
  return in_first_step_ ? found->second : found_.extract(found).mapped();
}

void StateKeeper::require_untaken(const std::string& name) const {
  if (!found_.contains(name)) return;
  fail(Errc::invalid_argument,
       "'{}' is used, but the state that was kept under this name when a worker was lost "
       "belongs to another parameter, which the loop made earlier and hasn't used: drop that "
       "parameter, or give it another name",
       name);
}

void StateKeeper::used(std::span<const ProgramInput> inputs) {
  if (found_.empty()) return;
  for (const ProgramInput& input : inputs) {
    if (is_state(input.kind)) found_.erase(input.name);
  }
}

void StateKeeper::end_first_step() {
  in_first_step_ = false;
  std::erase_if(found_, [](const auto& tensor) { return tensor.second.use_count() > 1; });
}

std::optional<std::size_t> StateKeeper::find(const std::string& name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

void StateKeeper::require_same(std::size_t place, const BufferPtr& buffer) const {
  const std::weak_ptr<Buffer>& known = buffers_[place];
  if (is_same(known, buffer) || known.expired()) return;
  fail(Errc::invalid_argument,
       "two parameters or optimizer states are named '{}' and used in turn. A job that "
       "survives losses or compares replicas identifies a tensor by its name; give the root "
       "modules of two models different names, as in Module(\"teacher\"), or stop using the "
       "first tensor",
       entries_[place].name);
}

std::size_t StateKeeper::place(const std::string& name, const TensorType& type,
                               const Sharding& sharding, StateKind kind) {
  const auto [found, is_new] = places_.try_emplace(name, entries_.size());
  if (is_new) {
    entries_.emplace_back(StateEntry{.name = name});
    buffers_.emplace_back();
  }
  StateEntry& entry = entries_[found->second];
  if (is_new || entry.type != type || entry.sharding != sharding) ++revision_;
  entry.type = type;
  entry.sharding = sharding;
  entry.kind = kind;
  return found->second;
}

void StateKeeper::put(const ProgramInput& state, const TensorType& type, const BufferPtr& before,
                      const BufferPtr& buffer) {
  if (const auto known = find(state.name)) require_same(*known, before);
  found_.erase(state.name);
  lies_in(place(state.name, type, state.sharding, state_kind(state.kind)), buffer);
}

void StateKeeper::lies_in(std::size_t place, const BufferPtr& buffer) {
  std::weak_ptr<Buffer>& known = buffers_[place];
  if (is_same(known, buffer)) return;  // unchanged, as after an update in place
  entries_[place].offset = static_cast<const ArenaBuffer&>(*buffer).block_offset();
  known = buffer;
}

std::vector<HashedTensor> StateKeeper::live() const {
  std::vector<HashedTensor> live;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const BufferPtr buffer = buffers_[i].lock();
    if (buffer == nullptr) continue;
    const auto& placed = static_cast<const ArenaBuffer&>(*buffer);
    HashedTensor& tensor = live.emplace_back(
        HashedTensor{entries_[i].name, entries_[i].type, entries_[i].sharding, {}});
    for (std::size_t chip = 0; chip < positions_.size(); ++chip) {
      tensor.offsets.push_back(placed.offset(chip));
    }
  }
  return live;
}

void StateKeeper::set_loaders(std::vector<StoredLoader> loaders) {
  loaders_ = std::move(loaders);
  ++loop_revision_;
}

void StateKeeper::set_commands(std::vector<CommandMark> commands) {
  commands_ = std::move(commands);
  ++loop_revision_;
}

bool StateKeeper::write(std::uint64_t step) {
  const auto is_dropped = [](const auto& buffer) { return buffer.expired(); };
  if (std::ranges::any_of(buffers_, is_dropped)) forget_dropped();
  return directory_.write(step, entries_, revision_ + loop_revision_, loaders_, commands_);
}

void StateKeeper::forget_dropped() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (buffers_[i].expired()) continue;
    if (kept != i) {
      entries_[kept] = std::move(entries_[i]);
      buffers_[kept] = std::move(buffers_[i]);
    }
    ++kept;
  }
  entries_.resize(kept);
  buffers_.resize(kept);
  places_.clear();
  for (std::size_t i = 0; i < kept; ++i) places_.emplace(entries_[i].name, i);
  ++revision_;
}

}  // namespace weft
