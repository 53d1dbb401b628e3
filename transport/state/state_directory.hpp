#pragma once
/// StateDirectory: says where a worker's chips have the last versions of the job's state. The
/// directory is in memory that outlives the worker's process.
///
/// The directory is behind the arena of the worker's first chip:
///
///   directory = slot{kDirectorySlotCount}
///   slot      = DirectorySlot, 64 bytes, then a state table (format/state_table.hpp)
///
/// The slots must cover every version to which the worker may have to return. The worker is never
/// more than kDirectorySlotCount - 1 tables ahead of the minimum of all commits (commits.hpp): at
/// most two runs are in progress, and a run that updates state, or whose step has another table,
/// waits until all other chips have begun it.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "transport/format/state_table.hpp"
#include "transport/job/job_memory.hpp"

namespace weft {

inline constexpr int kDirectorySlotCount = 4;

/// Only the loop's thread of the worker that drives the chip writes to the directory.
class StateDirectory {
 public:
  /// `chip` is the chip's number in the memory. Both references must outlive this object.
  StateDirectory(JobMemory& memory, const Mesh& mesh, int chip);

  /// Records the places of version `step`. Steps must not decrease. Returns true if the version got
  /// a new slot, and false if it has the same places as the previous version, and shares its slot.
  /// States with the same `revision` must differ only in offsets. `commands` are the last commands
  /// that the loop has read. Throws no_space if the tensors' table doesn't fit in a slot or in the
  /// memory.
  bool write(std::uint64_t step, std::span<const StateEntry> state, std::uint64_t revision,
             const std::vector<StoredLoader>& loaders = {},
             std::span<const CommandMark> commands = {});
  /// Returns the table of version `step`; std::nullopt if the directory doesn't have the version.
  /// Throws corrupt or version if the table isn't valid or a shard isn't among the arena's buffers.
  std::optional<StateTable> read(std::uint64_t step) const;
  /// Removes all versions.
  void clear();
  /// Removes all versions except version `step`, from which the job continues and runs the later
  /// steps again.
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
  void store(int index, std::span<const StateEntry> state, const std::vector<StoredLoader>& loaders,
             std::span<const CommandMark> commands, std::uint64_t revision);
  void require_in_arena(const StateEntry& entry) const;

  JobMemory& memory_;
  const Mesh& mesh_;
  const int chip_;
  int last_ = kDirectorySlotCount - 1;  ///< the slot that was written last
  /// The last write of this object to each slot; std::nullopt for slots to which it hasn't written.
  std::array<std::optional<Written>, kDirectorySlotCount> written_;
};

}  // namespace weft
