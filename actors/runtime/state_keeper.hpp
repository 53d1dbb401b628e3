#pragma once
/// StateKeeper: knows where the worker's chips have the job's state, writes it down for whoever
/// takes the worker's place, and finds again what was written down.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/device/state_hash.hpp"
#include "actors/runtime/arena_buffer.hpp"
#include "transport/state/state_directory.hpp"

namespace weft {

/// State is the parameters and optimizer state that runs have had: what none has had yet, the loop
/// makes again as it was. Of the chips that hold the same shard of a tensor one keeps the version
/// that is updated, until the next is everywhere; the others write over it, and copy it from there
/// where the job goes on at it. Used by the loop's thread.
class StateKeeper {
 public:
  /// `positions`: of the worker's chips; all workers have as many, dealt out in order of their ids.
  /// Finds the state that `resume_step` steps have left, and brings it into the arenas of these; 0:
  /// there is none yet. Throws corrupt or version where a directory isn't sound, or doesn't have
  /// that.
  StateKeeper(JobMemory& memory, const Mesh& mesh, std::span<const int> positions,
              std::uint64_t resume_step);

  /// The worker's chips that write over the version of a tensor that is updated, as another chip
  /// keeps it.
  ChipSet overwriters(const std::string& name, const Sharding& sharding) const;

  /// What the found state takes of the arenas, to be kept out of the pool.
  std::vector<BufferPool::Range> taken() const;
  /// Makes buffers of the found state, which go back to the pool.
  void hold(const std::shared_ptr<BufferPool>& pool);
  /// The found tensor of this name; null for none, and for the second who asks while the first has
  /// it. Throws invalid_argument for another type.
  BufferPtr take(const std::string& name, const TensorType& type);
  /// Throws invalid_argument where another tensor has taken what was kept for this one's name, and
  /// has not been used.
  void require_untaken(const std::string& name) const;
  /// What has been taken is gone for good once it is used, or the first step has ended or been
  /// committed: until then it is the next one's if it is dropped.
  void used(std::span<const ProgramInput> inputs);
  void end_first_step();

  /// Changes when a tensor is written down for the first time, forgotten, or has got another type
  /// or sharding.
  std::uint64_t revision() const { return revision_; }
  /// The number of the tensor, good for this revision; the next version of it is to be as given.
  std::size_t place(const std::string& name, const TensorType& type, const Sharding& sharding);
  /// That of a tensor which has been given one.
  std::optional<std::size_t> find(const std::string& name) const;
  /// Throws invalid_argument where the loop has another tensor, of the same name, in that place.
  void require_same(std::size_t place, const BufferPtr& buffer) const;
  /// A run has been started that writes the next version of the tensor in this place to `buffer`,
  /// or reads it there.
  void lies_in(std::size_t place, const BufferPtr& buffer);
  /// What runs have made so far of what the loop still has.
  std::vector<HashedTensor> live() const;
  /// Writes down where the state of `step` lies: what somebody still has. True: not where that of
  /// the step before does, so that the next run has to wait for the others' commits, as the
  /// directory has few slots.
  bool write(std::uint64_t step);

 private:
  void forget_dropped();
  std::int64_t bytes_of(const StateEntry& entry) const;
  int first_chip(int position) const;
  void copy_from_keepers();

  JobMemory& memory_;
  const Mesh& mesh_;
  const std::vector<int> positions_;
  StateDirectory directory_;
  const std::uint64_t resume_step_;
  std::uint64_t revision_ = 1;
  std::vector<StateEntry> entries_;
  std::vector<std::weak_ptr<Buffer>> buffers_;                           // of the entries
  std::unordered_map<std::string, std::size_t> places_;                  // of the entries, by name
  std::unordered_map<std::string, std::shared_ptr<ArenaBuffer>> found_;  // and not used yet
  bool in_first_step_ = true;
};

}  // namespace weft
