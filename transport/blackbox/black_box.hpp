#pragma once
/// BlackBox: reads the last actions of a job's threads, from a segment of shared memory or from a
/// copy of it in a run folder.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "transport/blackbox/box_clock.hpp"
#include "transport/blackbox/event.hpp"
#include "transport/blackbox/event_writer.hpp"
#include "transport/memory/segment.hpp"

namespace weft {

/// The sizes of a box, checked against the mapping.
struct BoxSizes {
  TickSource ticks = TickSource::monotonic;
  int num_workers = 0;
  int num_chips = 0;
};
/// Reads the sizes in the header. Throws not_found, version or corrupt.
BoxSizes read_box_sizes(const Segment& segment);

enum class RingKind : std::uint8_t { chip, loop, link, shared };
/// Returns "chip", "loop", "link" or "threads".
std::string_view to_string(RingKind kind) noexcept;

/// Identifies a ring by its owner: a chip, or a worker (-1: the trainer).
struct RingId {
  RingKind kind = RingKind::chip;
  int owner = 0;

  friend bool operator==(const RingId&, const RingId&) = default;
};

/// The waits of one chip in one collective call of a plan.
struct LedgerEntry {
  /// The text of the call's `enter` events; "" for all calls that share the last entry.
  std::string_view text{};
  std::uint64_t count = 0;
  std::uint64_t times_last = 0;  ///< how often this chip came last
  std::uint64_t waited_ns = 0;
  struct Bucket {
    /// The bucket counts waits from this long up to the next bucket's from_ns.
    std::uint64_t from_ns = 0;
    std::uint64_t count = 0;
  };
  std::vector<Bucket> waits{};
};

/// The sums over all collective calls of a chip.
struct LedgerSums {
  std::uint64_t calls = 0;
  std::uint64_t times_last = 0;
  std::uint64_t waited_ns = 0;
};
LedgerSums sum_up(std::span<const LedgerEntry> ledger);

/// The step of a chip's plan that the chip executes, or executed last.
struct Position {
  std::string_view text{};  ///< text of the `plan_step` event; "" before the first one
  std::uint32_t index = 0;  ///< index of the step in the plan
};

/// A black box of a job. Only one thread may use it at a time. The texts that its functions return,
/// such as those of events, live as long as the BlackBox.
class BlackBox {
 public:
  /// Maps the box of a job, read-only. Throws not_found, version or corrupt.
  static BlackBox open(std::string_view job);
  /// Reads a copy of a box in a file. Throws the errors of open(), and io.
  static BlackBox open_file(const std::string& path);
  static BlackBox from_bytes(std::span<const std::byte> bytes);

  int num_workers() const { return sizes_.num_workers; }
  int num_chips() const { return sizes_.num_chips; }
  TickSource ticks() const { return sizes_.ticks; }
  TraceLevel level() const;
  std::string job() const;
  std::string host() const;
  std::string boot_id() const;  ///< /proc/sys/kernel/random/boot_id of the host

  /// Returns the rings whose owner has joined.
  std::vector<RingId> rings() const;
  /// Returns the events of a ring, oldest first. Leaves out events that are being written.
  std::vector<Event> events(RingId ring) const;
  /// Returns how many events were ever written to the ring, which keeps only the last ones.
  std::uint64_t written(RingId ring) const;
  Position position(int chip) const;
  /// Returns how long the chip waited in each collective call since the job began. Leaves out calls
  /// that the chip hasn't made.
  std::vector<LedgerEntry> ledger(int chip) const;
  std::vector<std::uint64_t> waited_for_ns(int chip) const;  ///< by chip that was waited for
  /// Returns the step that the ring's owner is in.
  std::uint64_t step(RingId ring) const;

  /// Returns the scale that converts ticks to times. Each call reads the clock pairs again, because
  /// the trainer of a running job adds pairs. events() also calls this.
  TickScale scale() const;

 private:
  explicit BlackBox(Segment segment);
  struct Ring {
    const box_format::RingHead* head;
    const box_format::RecordV2* records;
    std::uint32_t capacity;
  };
  const box_format::BoxHeaderV2& header() const;
  bool is_present(int number) const;
  bool has(RingId ring) const;
  Ring find(RingId ring) const;
  std::string_view text(std::uint32_t id) const;

  Segment segment_;
  BoxSizes sizes_;
  mutable std::unordered_map<std::uint32_t, std::string> texts_;
};

}  // namespace weft
