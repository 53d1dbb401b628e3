#pragma once
/// JobMemory: the control segment and the arenas of a job's chips on this host.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <weft/transport/segment.hpp>

namespace weft {

/// A chip's arena: its segment, in two regions whose places are the same in every arena.
/// Temporaries begin at kTempOffset (plans place values there: equal offsets on all chips); what lives
/// longer than a run (parameters, inputs, outputs) begins at buffers_offset().
inline constexpr std::size_t kArenaTempOffset = 4096;

struct JobMemoryOptions {
  std::string job;             ///< 32 hex digits: unguessable
  int num_chips = 0;
  std::size_t arena_capacity = std::size_t{8} << 30;  ///< address space per chip, not memory
};

/// Maps every arena of the job. Thread-safe but for reserve() of one chip, which belongs to the chip's
/// worker.
class JobMemory {
 public:
  /// Creates all segments (control reserved, arenas sparse); removes what it made if it fails.
  static JobMemory create(const JobMemoryOptions& options);
  /// Maps them. Throws not_found, version or corrupt.
  static JobMemory open(std::string_view job);
  static JobMemory anonymous(const JobMemoryOptions& options);
  /// Removes every segment name of the job, the board's too. Returns how many there were.
  static int remove(std::string_view job) noexcept;

  int num_chips() const;
  std::byte* arena(int chip) const;
  std::size_t arena_capacity() const;
  std::size_t buffers_offset() const;  ///< half the capacity
  /// See Segment::reserve; offsets within the arena.
  void reserve(int chip, std::size_t offset, std::size_t bytes);

  /// Ends every wait of the job with Error{peer_lost}: `reason` (cut to 200 bytes) is what the error
  /// says. The first call wins; later ones change nothing. Async-signal-safe is not promised.
  void abort(std::string_view reason);
  bool aborted() const noexcept;
  std::string abort_reason() const;

  std::uint32_t generation() const noexcept;

  /// Where group `mask`'s words of a chip lie; see communicator.cpp.
  struct GroupLine;
  GroupLine& group_line(std::uint16_t mask, int chip) const;

 private:
  JobMemory() = default;
  Segment control_{Segment::anonymous(4096)};
  std::vector<Segment> arenas_;
};

}  // namespace weft
