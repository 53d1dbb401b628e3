#pragma once
/// Gathers the non-empty parts of a black box with one chip and no worker. A golden file stores
/// these parts and a fuzzer changes them; the rest of each ring and area is zeros.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/blackbox/box_format.hpp"

namespace weft::testing {

struct BoxPart {
  std::size_t offset;
  std::size_t bytes;
};

inline std::vector<BoxPart> box_parts() {
  using namespace box_format;
  constexpr std::size_t kRecords = 8 * sizeof(RecordV2);
  const std::size_t process = process_offset(0);
  const std::size_t texts = process + sizeof(ProcessPageV2);
  const std::size_t loop = texts + sizeof(TextAreaV2);
  const std::size_t link = loop + sizeof(RecordV2) * kLoopRecords;
  const std::size_t shared = link + sizeof(RecordV2) * kLinkRecords;
  const std::size_t chip = chip_offset(0, 0);
  const std::size_t events = chip + sizeof(ChipPageV2);
  return {{0, sizeof(BoxHeaderV2)},
          {process, 3 * sizeof(RingHead)},
          {texts, 512},
          {loop, kRecords},
          {link, kRecords},
          {shared, kRecords},
          {chip, sizeof(RingHead)},
          {chip + offsetof(ChipPageV2, waited_for), 16},
          {events, kRecords},
          {events + sizeof(RecordV2) * kChipRecords, 2 * sizeof(LedgerEntryV2)}};
}

inline std::vector<std::byte> gather_box(std::span<const std::byte> box) {
  std::vector<std::byte> gathered;
  for (const BoxPart& part : box_parts()) {
    const auto bytes = box.subspan(part.offset, part.bytes);
    gathered.insert(gathered.end(), bytes.begin(), bytes.end());
  }
  return gathered;
}

/// Puts gathered parts back into a box. Bytes that `gathered` lacks are zeros in the box.
inline std::vector<std::byte> scatter_box(std::span<const std::byte> gathered) {
  std::vector<std::byte> box(box_format::box_bytes(0, 1));
  for (const BoxPart& part : box_parts()) {
    const std::size_t bytes = std::min(part.bytes, gathered.size());
    std::ranges::copy(gathered.first(bytes),
                      box.begin() + static_cast<std::ptrdiff_t>(part.offset));
    gathered = gathered.subspan(bytes);
  }
  return box;
}

}  // namespace weft::testing
