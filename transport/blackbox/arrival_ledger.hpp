#pragma once
/// ArrivalLedger: records for which other chips a chip waits in its collectives, summed over a run.
///
/// A chip always checks its peers in the same order. If all have arrived at its first check, the
/// chip itself came last. Otherwise the last peer for which it had to wait came last: the chip had
/// seen the peers before that peer already, and the peers after it were there when it arrived. So a
/// chip needs to write only its own ledger.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "transport/blackbox/box_format.hpp"
#include "transport/memory/shared_field.hpp"

namespace weft {

/// A chip's wait in a collective, and the chip for which it waited.
struct ChipArrival {
  int last_chip = -1;        ///< the chip that came last; -1: this chip
  std::uint64_t waited = 0;  ///< in ticks
};

/// Writes one chip's ledger. Copyable. Only the chip's thread may use it.
class ArrivalLedger {
 public:
  ArrivalLedger() = default;  ///< makes a ledger that writes nothing
  explicit ArrivalLedger(box_format::ChipPageV2& page, box_format::LedgerEntryV2* entries)
      : page_(&page), entries_(entries) {}

  /// Returns the entry for calls with this text. Calls that find no free entry share the last one.
  std::uint32_t entry_of(std::uint32_t text) const {
    constexpr std::uint32_t kLast = box_format::kLedgerEntries - 1;
    if (entries_ == nullptr) return 0;
    for (std::uint32_t i = 0; i < kLast; ++i) {
      const std::uint32_t other = load_field(entries_[i].text);
      if (other == 0) store_field(entries_[i].text, text);
      if (other == 0 || other == text) return i;
    }
    return kLast;
  }

  void add(std::uint32_t entry, const ChipArrival& arrival) const {
    if (entries_ == nullptr) return;
    box_format::LedgerEntryV2& call = entries_[entry];
    grow(call.count, std::uint64_t{1});
    grow(call.times_last, std::uint64_t{arrival.last_chip < 0 ? 1U : 0U});
    grow(call.waited, arrival.waited);
    grow(call.histogram[bucket_of(arrival.waited)], std::uint32_t{1});
    if (arrival.last_chip < 0 || arrival.last_chip >= box_format::kChipCountMax) return;
    grow(page_->waited_for[arrival.last_chip], arrival.waited);
  }

 private:
  static std::uint32_t bucket_of(std::uint64_t ticks) {
    constexpr int kLast = box_format::LedgerEntryV2::kBuckets - 1;
    return static_cast<std::uint32_t>(
        std::clamp(static_cast<int>(std::bit_width(ticks)) - 8, 0, kLast));
  }
  template <typename T>
  static void grow(T& sum, T by) {
    store_field(sum, static_cast<T>(load_field(sum) + by));
  }

  box_format::ChipPageV2* page_ = nullptr;
  box_format::LedgerEntryV2* entries_ = nullptr;
};

}  // namespace weft
