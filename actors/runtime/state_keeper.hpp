#pragma once
/// StateKeeper: records where the worker's chips have the job's state, and writes these places to
/// the directory for a successor of the worker. It also finds the state of a predecessor there.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/runtime/arena_buffer.hpp"
#include "chips/engine/state_hash.hpp"
#include "transport/state/kept_state.hpp"
#include "transport/state/state_directory.hpp"

namespace weft {

/// State is the parameters and the optimizer state that runs have used; the loop makes unused ones
/// again. Several chips may hold the same shard of an updated tensor. One of them, the keeper,
/// keeps the previous version until every chip has the next one. The others overwrite it, and copy
/// it from the keeper if the job continues at that version. Only the loop's thread may use this
/// object.
class StateKeeper {
 public:
  /// Copies bytes of another chip to offset `to` in the memory of the worker's chip number `chip`.
  using Copy = std::function<void(std::size_t chip, const KeptShard& from, std::uint64_t to,
                                  std::size_t bytes)>;
  /// `positions` are the mesh positions of the worker's chips. All workers have the same number of
  /// chips, assigned in order of the chips' ids. If `resume_step` > 0, finds the state after that
  /// many steps, unless it is in a checkpoint, and calls `copy` for the parts that only other chips
  /// have. Throws corrupt or version if a directory isn't valid or doesn't have that step.
  StateKeeper(JobMemory& memory, const Mesh& mesh, std::span<const int> positions, const Copy& copy,
              std::uint64_t resume_step, StateSource source = StateSource::host);

  /// Returns those of the worker's chips that overwrite an updated tensor's version, because
  /// another chip keeps it.
  ChipSet overwriters(const std::string& name, const Sharding& sharding) const;

  /// Returns the ranges of the arenas that the found state occupies. The pool must not use them.
  std::vector<BufferPool::Range> taken() const;
  /// Makes buffers of the found state. When freed, they return to the pool.
  void hold(const std::shared_ptr<BufferPool>& pool);
  bool has_found(const std::string& name) const { return found_.contains(name); }
  /// Returns the found tensor of this name. Returns null if there is none, or while another tensor
  /// of that name has taken it. Throws invalid_argument for another type.
  BufferPtr take(const std::string& name, const TensorType& type);
  /// Throws invalid_argument if another tensor has taken the state of this name, but hasn't been
  /// used yet.
  void require_untaken(const std::string& name) const;
  /// Call used() when a run uses these inputs, and end_first_step() when the first step has ended
  /// or been committed. From then on, a tensor owns the state that it has taken. If a tensor is
  /// dropped before that, the next tensor of its name may take the state.
  void used(std::span<const ProgramInput> inputs);
  void end_first_step();

  /// Returns a number that changes when a tensor is recorded for the first time, is forgotten, or
  /// gets another type or sharding.
  std::uint64_t revision() const { return revision_; }
  /// Returns the loop's loaders, with their positions from the next step on. At first they are the
  /// loaders of the found state.
  const std::vector<StoredLoader>& loaders() const { return loaders_; }
  void set_loaders(std::vector<StoredLoader> loaders);
  /// Returns the last commands that the loop has read, at first those of the found state.
  const std::vector<CommandMark>& commands() const { return commands_; }
  void set_commands(std::vector<CommandMark> commands);
  /// Records the type and sharding of the tensor's next version. Returns the tensor's number, which
  /// is valid for this revision.
  std::size_t place(const std::string& name, const TensorType& type, const Sharding& sharding,
                    StateKind kind);
  /// Returns the tensor's number; nothing if it has none.
  std::optional<std::size_t> find(const std::string& name) const;
  /// Throws invalid_argument if number `place` belongs to another tensor of the same name that the
  /// loop still has.
  void require_same(std::size_t place, const BufferPtr& buffer) const;
  /// Records that the host has written the tensor's next version to `buffer`. `before` is its
  /// previous buffer, or null. Throws the errors of require_same().
  void put(const ProgramInput& state, const TensorType& type, const BufferPtr& before,
           const BufferPtr& buffer);
  /// Records that a run that was started writes the tensor's next version to `buffer`, or reads the
  /// current version there.
  void lies_in(std::size_t place, const BufferPtr& buffer);
  /// Returns the tensors that the loop still has, in the versions that runs have made so far.
  std::vector<HashedTensor> live() const;
  /// Writes the places of the state of `step` to the directory, for all tensors that are still
  /// alive. Returns true if they differ from those of the previous step. The next run must then
  /// wait for the commits of the other chips, because the directory has few slots.
  bool write(std::uint64_t step);

 private:
  void forget_dropped();
  std::int64_t bytes_of(const StateEntry& entry) const;
  int first_chip(int position) const;
  void take_kept(const Copy& copy);
  void take_own();

  JobMemory& memory_;
  const Mesh mesh_;
  const std::vector<int> positions_;
  StateDirectory directory_;
  const std::uint64_t resume_step_;
  std::uint64_t revision_ = 1;
  std::vector<StoredLoader> loaders_;
  std::vector<CommandMark> commands_;
  std::uint64_t loop_revision_ = 0;  ///< changes with the loaders and the commands
  std::vector<StateEntry> entries_;
  std::vector<std::weak_ptr<Buffer>> buffers_;                           // by entry
  std::unordered_map<std::string, std::size_t> places_;                  // entries' numbers
  std::unordered_map<std::string, std::shared_ptr<ArenaBuffer>> found_;  // unused ones
  bool in_first_step_ = true;
};

}  // namespace weft
