#pragma once
/// StateKeeper: records where the job's state is on the worker's chips, and writes these places to
/// the directory, for a process that takes the worker's place. It begins with the places that an
/// earlier process has written there.

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

/// State means the parameters and the optimizer state that runs have used; the loop makes unused
/// ones again. Several chips may hold the same shard of an updated tensor. One of these chips, the
/// keeper, keeps the previous version until every chip has the next one. The others overwrite it,
/// and copy it from the keeper if the job continues at that version. Only the loop's thread may use
/// this object.
class StateKeeper {
 public:
  /// A function that copies bytes of another chip to offset `to` in the memory of the worker's chip
  /// number `chip`.
  using Copy = std::function<void(std::size_t chip, const KeptShard& from, std::uint64_t to,
                                  std::size_t bytes)>;
  /// `positions` are the mesh positions of the worker's chips. All workers have the same number of
  /// chips, assigned in order of the chips' ids. If `resume_step` > 0, finds the state after that
  /// many steps, unless it is in a checkpoint, and calls `copy` for parts that only other workers'
  /// chips have. Throws corrupt or version if a directory isn't valid or doesn't have that step.
  StateKeeper(JobMemory& memory, const Mesh& mesh, std::span<const int> positions, const Copy& copy,
              std::uint64_t resume_step, StateSource source = StateSource::host);

  /// Returns the worker's chips that overwrite the previous version of an updated tensor, because
  /// another chip keeps it.
  ChipSet overwriters(const std::string& name, const Sharding& sharding) const;

  /// Returns the ranges of the arenas in which the found state is. The pool must not use them.
  std::vector<BufferPool::Range> taken() const;
  /// Makes the buffers of the found state. Their blocks are freed to `pool`.
  void hold(const std::shared_ptr<BufferPool>& pool);
  bool has_found(const std::string& name) const { return found_.contains(name); }
  /// Returns the found tensor of this name. Returns null if there is none, or if another tensor of
  /// that name has taken it. Throws invalid_argument if its type differs.
  BufferPtr take(const std::string& name, const TensorType& type);
  /// Throws invalid_argument if another tensor of this name has taken the state, but no run has
  /// used that tensor yet.
  void require_untaken(const std::string& name) const;
  /// Call used() when a run uses these inputs, and end_first_step() when the first step has ended
  /// or been committed. After both, a tensor owns the state that it has taken. If it is dropped
  /// earlier, the next tensor of its name may take the state.
  void used(std::span<const ProgramInput> inputs);
  void end_first_step();

  /// Returns a number that changes when a tensor is recorded for the first time, is forgotten, or
  /// changes its type or sharding.
  std::uint64_t revision() const { return revision_; }
  /// Returns the loop's loaders, with their positions from the next step on. Before the loop sets
  /// any, returns the loaders of the found state.
  const std::vector<StoredLoader>& loaders() const { return loaders_; }
  void set_loaders(std::vector<StoredLoader> loaders);
  /// Returns the last commands that the loop has read. Before it has read any, returns the commands
  /// of the found state.
  const std::vector<CommandMark>& commands() const { return commands_; }
  void set_commands(std::vector<CommandMark> commands);
  /// Records the type and sharding of the tensor's next version. Returns the tensor's number, which
  /// is valid until revision() changes.
  std::size_t place(const std::string& name, const TensorType& type, const Sharding& sharding,
                    StateKind kind);
  /// Returns the tensor's number; nothing if it has none.
  std::optional<std::size_t> find(const std::string& name) const;
  /// Throws invalid_argument if number `place` belongs to another tensor of the same name that the
  /// loop hasn't dropped.
  void require_same(std::size_t place, const BufferPtr& buffer) const;
  /// Records that the host has written the tensor's next version to `buffer`. `before` is its
  /// previous buffer, or null. Throws the errors of require_same().
  void put(const ProgramInput& state, const TensorType& type, const BufferPtr& before,
           const BufferPtr& buffer);
  /// Records that a run that has begun writes the tensor's next version to `buffer`, or reads the
  /// current version there.
  void lies_in(std::size_t place, const BufferPtr& buffer);
  /// Returns the tensors that the loop hasn't dropped, in the versions that runs have made so far.
  std::vector<HashedTensor> live() const;
  /// Writes to the directory where the state of `step` is, for all tensors that the loop hasn't
  /// dropped. Returns true if the places differ from those of the previous step. Then the next run
  /// must wait for the commits of the other chips, because the directory has few slots.
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
  std::unordered_map<std::string, std::size_t> places_;                  // entries' indices, by
                                                                         // name
  std::unordered_map<std::string, std::shared_ptr<ArenaBuffer>> found_;  // found tensors that
                                                                         // aren't used yet
  bool in_first_step_ = true;
};

}  // namespace weft
