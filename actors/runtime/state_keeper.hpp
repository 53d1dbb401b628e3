#pragma once
/// StateKeeper: records where the worker's chips have the job's state, writes it to the directory
/// for a successor of the worker, and finds the state of a predecessor there.

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

/// State is the parameters and optimizer state that runs have used; the loop makes unused ones
/// again. Of the chips that hold the same shard of an updated tensor, one (the keeper) keeps the
/// version before until every chip has the next one. The others overwrite it, and copy it from the
/// keeper if the job continues at it. Used by the loop's thread.
class StateKeeper {
 public:
  /// Copies bytes that another chip has to `to` in the memory of the worker's chip number `chip`.
  using Copy = std::function<void(std::size_t chip, const KeptShard& from, std::uint64_t to,
                                  std::size_t bytes)>;
  /// `positions`: of the worker's chips; all workers have equally many, assigned in order of their
  /// ids. Finds the state after `resume_step` steps, and lets `copy` get what other chips have of
  /// it, if `is_kept` and steps were taken. Throws corrupt or version if a directory isn't valid or
  /// doesn't have that step.
  StateKeeper(JobMemory& memory, const Mesh& mesh, std::span<const int> positions, const Copy& copy,
              std::uint64_t resume_step, bool is_kept = true);

  /// The worker's chips that overwrite an updated tensor's version, because another chip keeps it.
  ChipSet overwriters(const std::string& name, const Sharding& sharding) const;

  /// The ranges of the arenas that the found state occupies; the pool must not use them.
  std::vector<BufferPool::Range> taken() const;
  /// Makes buffers of the found state, which return to the pool when freed.
  void hold(const std::shared_ptr<BufferPool>& pool);
  bool has_found(const std::string& name) const { return found_.contains(name); }
  /// The found tensor of this name; null if there is none, or while another tensor of that name has
  /// it. Throws invalid_argument for another type.
  BufferPtr take(const std::string& name, const TensorType& type);
  /// Throws invalid_argument if another tensor has taken the state of this name and has not been
  /// used.
  void require_untaken(const std::string& name) const;
  /// A taken tensor is taken for good once it is used, or once the first step has ended or been
  /// committed. If it is dropped earlier, the next tensor of its name may take it.
  void used(std::span<const ProgramInput> inputs);
  void end_first_step();

  /// Changes when a tensor is recorded for the first time, is forgotten, or has another type or
  /// sharding.
  std::uint64_t revision() const { return revision_; }
  /// The loop's loaders, with the positions that they have from the next step on. At first they
  /// are those of the found state.
  const std::vector<StoredLoader>& loaders() const { return loaders_; }
  void set_loaders(std::vector<StoredLoader> loaders);
  /// The tensor's number, valid for this revision. Its next version has this type and sharding.
  std::size_t place(const std::string& name, const TensorType& type, const Sharding& sharding,
                    StateKind kind);
  /// The number of a tensor that has one.
  std::optional<std::size_t> find(const std::string& name) const;
  /// Throws invalid_argument if another tensor of the loop has the same name and number.
  void require_same(std::size_t place, const BufferPtr& buffer) const;
  /// Records that the host has put the tensor's next version to `buffer`. `before`: the buffer that
  /// it had, or null. Throws as require_same().
  void put(const ProgramInput& state, const TensorType& type, const BufferPtr& before,
           const BufferPtr& buffer);
  /// Records that a started run writes the tensor's next version to `buffer`, or reads it there.
  void lies_in(std::size_t place, const BufferPtr& buffer);
  /// The versions that runs have made so far, of tensors that the loop still has.
  std::vector<HashedTensor> live() const;
  /// Writes to the directory where the state of `step` lies: all tensors that are still alive. True
  /// if the table differs from that of the step before. The next run must then wait for the others'
  /// commits, because the directory has few slots.
  bool write(std::uint64_t step);

 private:
  void forget_dropped();
  std::int64_t bytes_of(const StateEntry& entry) const;
  int first_chip(int position) const;
  void take_kept(const Copy& copy);

  JobMemory& memory_;
  const Mesh& mesh_;
  const std::vector<int> positions_;
  StateDirectory directory_;
  const std::uint64_t resume_step_;
  std::uint64_t revision_ = 1;
  std::vector<StoredLoader> loaders_;
  std::uint64_t loaders_revision_ = 0;
  std::vector<StateEntry> entries_;
  std::vector<std::weak_ptr<Buffer>> buffers_;                           // of the entries
  std::unordered_map<std::string, std::size_t> places_;                  // of the entries, by name
  std::unordered_map<std::string, std::shared_ptr<ArenaBuffer>> found_;  // and not used yet
  bool in_first_step_ = true;
};

}  // namespace weft
