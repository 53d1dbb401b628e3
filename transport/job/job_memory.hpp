#pragma once
/// JobMemory: the control segment and the arenas of a job's chips on this host.

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

/// A chip's arena is its segment, in two regions with the same offsets in every arena. The region
/// of one run begins at kArenaTempOffset: temporaries grow up from there, shared values down from
/// its end. The region of longer-lived data begins at buffers_offset(): buffers (parameters,
/// inputs, outputs) grow up from there, arrays down from its end.
inline constexpr std::size_t kArenaTempOffset = 4096;
/// Address space for a worker's state directory. It is behind the arena of the worker's first chip.
inline constexpr std::size_t kDirectoryBytes = std::size_t{16} << 20;
/// A capacity is a multiple of this, so that both regions begin on a page.
inline constexpr std::size_t kArenaCapacityUnit = 8192;

struct JobMemoryOptions {
  std::string job;                                    ///< 32 hex digits, unguessable
  int num_chips = 0;                                  ///< 1 to kLocalChipCountMax
  std::size_t arena_capacity = std::size_t{8} << 30;  ///< address space per chip, not memory
  std::string control_root{};  ///< the root that has its lock (job_folder.hpp)
};

/// Maps every arena of the job. Thread-safe.
class JobMemory {
 public:
  /// Creates all segments: control is reserved, arenas are sparse. Removes them again if it fails.
  static JobMemory create(const JobMemoryOptions& options);
  /// Maps the segments. Throws not_found, version or corrupt.
  static JobMemory open(std::string_view job);
  static JobMemory anonymous(const JobMemoryOptions& options);
  /// Removes the names of all the job's segments, including the board, the black box and
  /// channels. Returns their number.
  static int remove(std::string_view job) noexcept;
  /// Removes the names of the arenas; no process can open the arenas afterwards. The kernel frees
  /// them with the last process that has mapped them, however that ends. The control segment, which
  /// is small and shows which chips wait for which, keeps its name.
  void remove_arena_names() const noexcept;
  /// Returns the control root that the job's memory names; "" if there is no such memory, or if it
  /// names none.
  static std::string control_root_of(std::string_view job);
  /// Children that this process forks will have no arenas: see Segment.
  void hide_arenas_from_children();

  int num_chips() const { return static_cast<int>(arenas_.size()); }
  std::byte* arena(int chip) const { return segment(chip).data(); }
  std::size_t arena_capacity() const { return arena_capacity_; }
  std::size_t buffers_offset() const { return arena_capacity() / 2; }
  /// See Segment::reserve. Offsets are within the arena.
  void reserve(int chip, std::size_t offset, std::size_t bytes);
  /// See Segment::prefer_this_node. The thread that drives the chip must call it.
  void prefer_this_node(int chip) noexcept {
    arenas_[static_cast<std::size_t>(chip)].prefer_this_node();
  }

  /// Ends every wait of the job with Error{peer_lost} and the text `reason` (cut to 199 bytes).
  /// Only the first call has an effect. Not async-signal-safe.
  void abort(std::string_view reason);
  bool aborted() const noexcept;
  /// Returns the reason of the abort; empty if the job isn't aborted.
  std::string abort_reason() const;

  /// Begins the job's next generation, in which every chip's state is at `step` and no collective
  /// has been called. The trainer calls it while no process uses the memory.
  void begin_generation(std::uint64_t step);
  std::uint32_t generation() const noexcept;
  /// Returns whether there were more chips than cores on which the creating thread could run. The
  /// result is the same for all processes, whichever cores each may use.
  bool crowded() const noexcept;

  /// Used by Commits and StateDirectory.
  CommitLine& commit_line(int chip) const;
  std::byte* directory(int chip) const { return arena(chip) + directory_offset(); }
  void reserve_directory(int chip, std::size_t offset, std::size_t bytes);

  /// Used by collectives; see shared_memory_tier.cpp.
  GroupLine& group_line(std::uint16_t mask, int chip) const;
  CallRecord& call_record(int chip) const;
  /// Returns the chip's two mailboxes for the group of `mask`, kMailboxBytes each. They are behind
  /// its arena.
  std::byte* mailboxes(std::uint16_t mask, int chip) const;
  void reserve_mailboxes(std::uint16_t mask, int chip);
  /// Returns the chip's ring for the group of `mask`. It is behind the mailboxes.
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
  std::size_t arena_capacity_;  ///< the value that was checked
};

}  // namespace weft
