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
/// Behind the arena of a worker's first chip lies its state directory: address space for it.
inline constexpr std::size_t kDirectoryBytes = std::size_t{16} << 20;
/// A capacity is a multiple of this, so that both regions begin on a page.
inline constexpr std::size_t kArenaCapacityUnit = 8192;

struct JobMemoryOptions {
  std::string job;                                    ///< 32 hex digits: unguessable
  int num_chips = 0;                                  ///< 1 to kLocalChipCountMax
  std::size_t arena_capacity = std::size_t{8} << 30;  ///< address space per chip, not memory
  std::string control_root{};  ///< where its lock is (job_folder.hpp), for those who look elsewhere
};

/// Maps every arena of the job. Thread-safe.
class JobMemory {
 public:
  /// Creates all segments (control reserved, arenas sparse); removes them again if it fails.
  static JobMemory create(const JobMemoryOptions& options);
  /// Maps them. Throws not_found, version or corrupt.
  static JobMemory open(std::string_view job);
  static JobMemory anonymous(const JobMemoryOptions& options);
  /// Removes the names of all the job's segments, including the board, the black box and
  /// channels. Returns their number.
  static int remove(std::string_view job) noexcept;
  /// Removes the names of the arenas, when no process is to open them any more. The kernel frees
  /// them with the last process that has mapped them, however that ends. The control segment, which
  /// is small and says who waits for whom, keeps its name.
  void remove_arena_names() const noexcept;
  /// The control root that the job's memory names; "" where there is no such memory, or it names
  /// none.
  static std::string control_root_of(std::string_view job);
  /// Children that this process forks have no arenas: see Segment.
  void hide_arenas_from_children();

  int num_chips() const { return static_cast<int>(arenas_.size()); }
  std::byte* arena(int chip) const { return segment(chip).data(); }
  std::size_t arena_capacity() const { return arena_capacity_; }
  std::size_t buffers_offset() const { return arena_capacity() / 2; }
  /// See Segment::reserve; offsets within the arena.
  void reserve(int chip, std::size_t offset, std::size_t bytes);
  /// See Segment::prefer_this_node: to be called by the thread that drives the chip.
  void prefer_this_node(int chip) noexcept {
    arenas_[static_cast<std::size_t>(chip)].prefer_this_node();
  }

  /// Ends every wait of the job with Error{peer_lost} and the text `reason` (cut to 199 bytes). The
  /// first call wins; later ones change nothing. Not async-signal-safe.
  void abort(std::string_view reason);
  bool aborted() const noexcept;
  /// The reason of the abort; empty if not aborted.
  std::string abort_reason() const;

  /// Begins the job's next generation, in which every chip's state is at `step` and no collective
  /// has been called. For the trainer, while no process uses the memory.
  void begin_generation(std::uint64_t step);
  std::uint32_t generation() const noexcept;
  /// Whether there are more chips than cores that the creating thread may run on. The same for all
  /// processes, whatever cores each may use.
  bool crowded() const noexcept;

  /// For Commits and StateDirectory.
  CommitLine& commit_line(int chip) const;
  std::byte* directory(int chip) const { return arena(chip) + directory_offset(); }
  void reserve_directory(int chip, std::size_t offset, std::size_t bytes);

  /// For collectives; see shared_memory_tier.cpp.
  GroupLine& group_line(std::uint16_t mask, int chip) const;
  CallRecord& call_record(int chip) const;
  /// The chip's two mailboxes for the group of `mask`, kMailboxBytes each: behind its arena.
  std::byte* mailboxes(std::uint16_t mask, int chip) const;
  void reserve_mailboxes(std::uint16_t mask, int chip);
  /// The chip's ring for the group of `mask`, behind the mailboxes.
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
  std::size_t arena_capacity_;  ///< as it was when it was checked
};

}  // namespace weft
