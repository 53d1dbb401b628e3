#pragma once
/// BlackBox: reads what the threads of a job did last, from the job's segment or from a copy of it
/// in a run folder.

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

/// Checked against the mapping.
struct BoxSizes {
  TickSource ticks = TickSource::monotonic;
  int num_workers = 0;
  int num_chips = 0;
};
/// Throws not_found, version or corrupt.
BoxSizes read_box_sizes(const Segment& segment);

enum class RingKind : std::uint8_t { chip, loop, link, shared };
/// "chip", "loop", "link", "threads".
std::string_view to_string(RingKind kind) noexcept;

/// Whose ring it is: of a chip, or of a worker (-1: the trainer).
struct RingId {
  RingKind kind = RingKind::chip;
  int owner = 0;

  friend bool operator==(const RingId&, const RingId&) = default;
};

/// The waits of one chip in one collective call of a plan.
struct LedgerEntry {
  std::string_view text{};  ///< as that of `enter`; "" for calls that found no entry of their own
  std::uint64_t count = 0;
  std::uint64_t times_last = 0;  ///< it came last
  std::uint64_t waited_ns = 0;
  struct Bucket {
    std::uint64_t from_ns = 0;  ///< waited as long, or longer up to the next bucket's
    std::uint64_t count = 0;
  };
  std::vector<Bucket> waits{};
};

/// Of all calls of a chip.
struct LedgerSums {
  std::uint64_t calls = 0;
  std::uint64_t times_last = 0;
  std::uint64_t waited_ns = 0;
};
LedgerSums sum_up(std::span<const LedgerEntry> ledger);

/// What a chip does, or did last: a step of its plan.
struct Position {
  std::string_view text{};  ///< as that of `plan_step`; "" before the first
  std::uint32_t index = 0;  ///< of the plan's step
};

/// Used by one thread at a time. Texts and events' texts live as long as it does.
class BlackBox {
 public:
  /// Maps the box of a job, read-only. Throws not_found, version or corrupt.
  static BlackBox open(std::string_view job);
  /// A copy. Throws as open(), and io.
  static BlackBox open_file(const std::string& path);
  static BlackBox from_bytes(std::span<const std::byte> bytes);

  int num_workers() const { return sizes_.num_workers; }
  int num_chips() const { return sizes_.num_chips; }
  TickSource ticks() const { return sizes_.ticks; }
  TraceLevel level() const;
  std::string job() const;
  std::string host() const;
  std::string boot_id() const;  ///< of the host's kernel: /proc/sys/kernel/random/boot_id

  /// Rings whose owner has come.
  std::vector<RingId> rings() const;
  /// The events of a ring, oldest first, without those that are being written.
  std::vector<Event> events(RingId ring) const;
  /// How many were ever written to it: the ring keeps the last.
  std::uint64_t written(RingId ring) const;
  Position position(int chip) const;
  /// Who kept this chip waiting, since the job began. Calls that it hasn't made are left out.
  std::vector<LedgerEntry> ledger(int chip) const;
  std::vector<std::uint64_t> waited_for_ns(int chip) const;  ///< by chip
  /// Of its owner's last event.
  std::uint64_t step(RingId ring) const;

  /// The clocks of the host. They are read anew by each call, since a trainer that lives adds to
  /// them; `events` does so itself.
  TickScale scale() const;

 private:
  explicit BlackBox(Segment segment);
  struct Ring {
    const box_format::RingHead* head;
    const box_format::RecordV1* records;
    std::uint32_t capacity;
  };
  const box_format::BoxHeaderV1& header() const;
  bool is_present(int number) const;
  bool has(RingId ring) const;
  Ring find(RingId ring) const;
  std::string_view text(std::uint32_t id) const;

  Segment segment_;
  BoxSizes sizes_;
  mutable std::unordered_map<std::uint32_t, std::string> texts_;
};

}  // namespace weft
