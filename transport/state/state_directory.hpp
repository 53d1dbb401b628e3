#pragma once
/// StateDirectory: where a worker's chips have each of the last versions of the job's state, in
/// memory that outlives the worker's process.
///
/// It lies behind the arena of the worker's first chip:
///
///   directory = slot{kDirectorySlotCount}
///   slot      = DirectorySlot, 64 bytes, then a state table (format/state_table.hpp)
///
/// A worker is never more than kDirectorySlotCount - 1 tables ahead of the least commit
/// (commits.hpp) that it can still be asked to go back to: two runs may be under way, and one that
/// updates state, or whose step has another table, waits until all others have begun it.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "transport/format/state_table.hpp"
#include "transport/job/job_memory.hpp"

namespace weft {

inline constexpr int kDirectorySlotCount = 4;

/// One writer: the loop's thread of the worker whose chip it is.
class StateDirectory {
 public:
  /// `chip`: its number in the memory. Both must outlive it.
  StateDirectory(JobMemory& memory, const Mesh& mesh, int chip);

  /// Says where version `step` lies; steps only grow. Versions with the same places take one slot:
  /// false, or another one: true. `revision`: states of one revision differ in offsets only. Throws
  /// no_space where there are too many tensors for a slot, or for the memory.
  bool write(std::uint64_t step, std::span<const StateEntry> state, std::uint64_t revision);
  /// What was written for `step`; nothing if that isn't there. Throws corrupt or version where the
  /// table isn't sound, or a shard wouldn't lie in the arena's region for buffers.
  std::optional<std::vector<StateEntry>> read(std::uint64_t step) const;
  /// Forgets all other versions: those of steps that are to be taken again.
  void keep_only(std::uint64_t step);

 private:
  struct DirectorySlot;
  DirectorySlot& slot(int index) const;
  std::byte* table(int index) const;
  std::optional<int> find(std::uint64_t step) const;
  struct Written {
    std::uint64_t revision = 0;
    std::vector<std::uint64_t> offsets{};
  };
  bool holds(int index, std::span<const StateEntry> state, std::uint64_t revision) const;
  void store(int index, std::span<const StateEntry> state, std::uint64_t revision);
  void require_in_arena(const StateEntry& entry) const;

  JobMemory& memory_;
  const Mesh& mesh_;
  const int chip_;
  int last_ = kDirectorySlotCount - 1;  ///< the slot that was written last
  /// What the slots hold: nothing where this object hasn't written it.
  std::array<std::optional<Written>, kDirectorySlotCount> written_;
};

}  // namespace weft
