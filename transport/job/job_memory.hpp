#pragma once
/// JobMemory: maps the control segment and the arenas of a job's chips on this host.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transport/memory/segment.hpp"

namespace weft {

struct CallRecord;
struct CommitLine;
struct ControlHeader;
struct GroupLine;
struct SlotRing;

/// A chip's arena consists of two regions, at the same offsets for all chips. The region for data
/// of one run begins at kArenaTempOffset; it has temporaries from its lower end on, and shared
/// values from its upper end down. The region for longer-lived data begins at buffers_offset(); it
/// has buffers (parameters, inputs, outputs) from its lower end on, and arrays from its upper end
/// down.
inline constexpr std::size_t kArenaTempOffset = 4096;
/// The address space of a worker's state directory, which comes after the arena of the worker's
/// first chip.
inline constexpr std::size_t kDirectoryBytes = std::size_t{16} << 20;
/// The capacity of an arena must be a multiple of this, so that both regions begin on a page.
inline constexpr std::size_t kArenaCapacityUnit = 8192;

struct JobMemoryOptions {
  std::string job;                                    ///< the job's id: 32 hex digits, unguessable
  int num_chips = 0;                                  ///< 1 to kLocalChipCountMax
  std::size_t arena_capacity = std::size_t{8} << 30;  ///< address space per chip, not memory
  std::string control_root{};  ///< the control root with the job's lock (job_folder.hpp)
};

/// Returns "weft-<job>-control".
std::string control_segment_name(std::string_view job);

/// Maps every arena of the job. Thread-safe.
class JobMemory {
 public:
  /// Creates all segments, but reserves memory only for the control segment. If it throws, no
  /// segment remains.
  static JobMemory create(const JobMemoryOptions& options);
  /// Maps the segments. Throws not_found, version or corrupt.
  static JobMemory open(std::string_view job);
  static JobMemory anonymous(const JobMemoryOptions& options);
  /// Removes the names of all segments of the job, including the board, the black box and channels.
  /// Returns the number of removed names.
  static int remove(std::string_view job) noexcept;
  /// Removes the names of the arenas, so that no other process can open them. The kernel frees the
  /// arenas when the last process that has mapped them ends in any way. The control segment, which
  /// is small and shows which chips wait for which, keeps its name.
  void remove_arena_names() const noexcept;
  /// Returns the control root that is stored in the job's memory; "" if there is no such memory or
  /// it names no root.
  static std::string control_root_of(std::string_view job);
  /// Children that are forked from now on will have no arenas; see Segment::hide_from_children().
  void hide_arenas_from_children();

  int num_chips() const { return static_cast<int>(arenas_.size()); }
  std::byte* arena(int chip) const { return segment(chip).data(); }
  std::size_t arena_capacity() const { return arena_capacity_; }
  std::size_t buffers_offset() const { return arena_capacity() / 2; }
  /// Calls Segment::reserve() for the chip's segment. `offset` is within the arena.
  void reserve(int chip, std::size_t offset, std::size_t bytes);
  /// Calls Segment::prefer_this_node() for the chip's segment. Only the thread that drives the chip
  /// may call this.
  void prefer_this_node(int chip) noexcept {
    arenas_[static_cast<std::size_t>(chip)].prefer_this_node();
  }

  /// Ends every wait of the job with Error{peer_lost} and the text `reason`, cut to 199 bytes. Only
  /// the first call has an effect. Not async-signal-safe.
  void abort(std::string_view reason);
  bool aborted() const noexcept;
  /// Returns the reason of the abort; "" if the job isn't aborted.
  std::string abort_reason() const;

  /// Begins the job's next generation: every chip's state is at `step`, and no collective was
  /// called yet. The trainer calls it while no other process uses the memory.
  void begin_generation(std::uint64_t step);
  std::uint32_t generation() const noexcept;
  /// Returns whether the job has more chips than there were cores for the thread that created the
  /// memory. The result is the same in all processes, whichever cores they may use.
  bool crowded() const noexcept;

  /// The following functions are for Commits and StateDirectory.
  CommitLine& commit_line(int chip) const;
  std::byte* directory(int chip) const { return arena(chip) + directory_offset(); }
  void reserve_directory(int chip, std::size_t offset, std::size_t bytes);

  /// The following functions are for collectives; see shared_memory_tier.cpp.
  GroupLine& group_line(std::uint16_t mask, int chip) const;
  CallRecord& call_record(int chip) const;
  /// Returns the chip's two mailboxes for the group of `mask`, kMailboxBytes each. They are behind
  /// the chip's arena.
  std::byte* mailboxes(std::uint16_t mask, int chip) const;
  void reserve_mailboxes(std::uint16_t mask, int chip);
  /// Returns the chip's ring for the group of `mask`, which is behind the mailboxes.
  SlotRing& slot_ring(std::uint16_t mask, int chip) const;
  void reserve_slot_ring(std::uint16_t mask, int chip);

 private:
  JobMemory(Segment control, std::vector<Segment> arenas, std::size_t arena_capacity);
  ControlHeader& control() const;
  std::byte* control_of(int chip) const;
  const Segment& segment(int chip) const { return arenas_.at(static_cast<std::size_t>(chip)); }
  std::size_t mailboxes_offset(std::uint16_t mask) const;
  std::size_t slot_ring_offset(std::uint16_t mask) const;
  std::size_t directory_offset() const;
  void wake_sleepers() const;

  Segment control_;
  std::vector<Segment> arenas_;
  std::size_t arena_capacity_;  ///< a copy of the checked value
};

}  // namespace weft
