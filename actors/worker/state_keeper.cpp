#include <weft/actors/worker/state_keeper.hpp>

#include <algorithm>

#include <weft/spmd/error.hpp>
#include <weft/spmd/passes/partition.hpp>

namespace weft {

StateKeeper::StateKeeper(JobMemory& memory, const Mesh& mesh, int chip, std::uint64_t resume_step)
    : mesh_(mesh), directory_(memory, mesh, chip), resume_step_(resume_step) {
  if (resume_step > 0) {
    auto state = directory_.read(resume_step);
    if (!state) {
      fail(Errc::corrupt, "the state directory of chip {} doesn't know step {}, to go on at", chip,
           resume_step);
    }
    entries_ = std::move(*state);
  }
  directory_.keep_only(resume_step);
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
  if (found == found_.end()) return nullptr;
  if (found->second->type() != type) {
    fail(Errc::invalid_argument,
         "'{}' is {}, but the {} steps that were taken before a worker was lost left it as {}: a "
         "loop that goes on at ctx.step() must make the parameters that it had",
         name, type.to_string(), resume_step_, found->second->type().to_string());
  }
  return found_.extract(found).mapped();
}

std::size_t StateKeeper::place(const std::string& name, const TensorType& type,
                               const Sharding& sharding) {
  const auto [found, is_new] = places_.try_emplace(name, entries_.size());
  if (is_new) {
    entries_.emplace_back(StateEntry{.name = name});
    buffers_.emplace_back();
  }
  StateEntry& entry = entries_[found->second];
  if (is_new || entry.type != type || entry.sharding != sharding) ++revision_;
  entry.type = type;
  entry.sharding = sharding;
  return found->second;
}

void StateKeeper::updated(std::size_t place, const std::shared_ptr<ArenaBuffer>& buffer) {
  entries_[place].offset = buffer->offset();
  buffers_[place] = buffer;
}

std::vector<StateEntry> StateKeeper::live() const {
  std::vector<StateEntry> live;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!buffers_[i].expired()) live.push_back(entries_[i]);
  }
  return live;
}

void StateKeeper::write(std::uint64_t step, bool forget) {
  const auto is_dropped = [](const auto& buffer) { return buffer.expired(); };
  if (forget && std::ranges::any_of(buffers_, is_dropped)) forget_dropped();
  directory_.write(step, entries_, revision_);
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
