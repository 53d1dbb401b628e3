#include "transport/blackbox/black_box.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <weft/tensor/error.hpp>

#include "data/files/file_bytes.hpp"
#include "data/files/utf8.hpp"
#include "transport/blackbox/black_box_writer.hpp"

namespace weft {
namespace {

using box_format::BoxHeaderV2;
using box_format::ChipPageV2;
using box_format::ClockPairV2;
using box_format::kClockPairs;
using box_format::kTextBytes;
using box_format::LedgerEntryV2;
using box_format::ProcessPageV2;
using box_format::RecordV2;
using box_format::TextAreaV2;

constexpr std::size_t kBoxBytesMax =
    box_format::box_bytes(box_format::kWorkerCountMax, box_format::kChipCountMax);

template <std::size_t N>
std::string text_of(const char (&field)[N]) {
  return as_utf8({field, strnlen(field, N)});
}

struct Copy {
  std::uint64_t tick = 0;
  std::uint64_t words[4] = {};
};

/// Copies a record. Returns false if the record is empty or is being written.
bool copy(const RecordV2& record, Copy& out) {
  out.tick = load_field(record.words[0]);
  for (int i = 1; i < 4; ++i) out.words[i] = load_field(record.words[i]);
  return out.tick > box_format::kBusy && load_field(record.words[0]) == out.tick;
}

/// Copies the clock pairs while no writer changes them. If a bounded number of tries fails, returns
/// the last copy, which may be inconsistent.
std::vector<ClockPairV2> copy_pairs(const BoxHeaderV2& header) {
  constexpr int kTryCount = 100;
  std::vector<ClockPairV2> pairs;
  for (int i = 0; i < kTryCount; ++i) {
    const std::uint64_t before = load_field(header.pair_sequence);
    const std::uint64_t count = std::min<std::uint64_t>(load_field(header.pair_count), kClockPairs);
    pairs.clear();
    for (std::uint64_t p = 0; p < count; ++p) {
      const ClockPairV2& pair = header.pairs[p];
      pairs.push_back(
          {load_field(pair.tick), load_field(pair.monotonic_ns), load_field(pair.realtime_ns)});
    }
    if (before % 2 == 0 && load_field(header.pair_sequence) == before) break;
  }
  return pairs;
}

}  // namespace

std::string_view to_string(RingKind kind) noexcept {
  switch (kind) {
    case RingKind::chip: return "chip";
    case RingKind::loop: return "loop";
    case RingKind::link: return "link";
    case RingKind::shared: return "threads";
  }
  return "unknown";
}

BoxSizes read_box_sizes(const Segment& segment) {
  const std::string& name = segment.name();
  if (segment.capacity() < sizeof(BoxHeaderV2)) {
    fail(Errc::corrupt, "black box {} has {} bytes, but its header alone needs {}", name,
         segment.capacity(), sizeof(BoxHeaderV2));
  }
  const auto& header = *reinterpret_cast<const BoxHeaderV2*>(segment.data());
  const std::uint64_t magic = load_field(header.magic);
  if (magic == 0) fail(Errc::not_found, "black box {} is still being made", name);
  if (magic != box_format::kMagic) {
    fail(Errc::corrupt, "{} isn't a black box: its first word is {:#x}", name, magic);
  }
  if (header.version != box_format::kVersion) {
    fail(Errc::version,
         "black box {} is of version {}, this program reads version {}: use the weft that made it",
         name, header.version, box_format::kVersion);
  }
  const std::int32_t num_workers = load_field(header.num_workers);
  const std::int32_t num_chips = load_field(header.num_chips);
  const std::uint32_t clock = load_field(header.clock);
  if (header.header_bytes != sizeof(BoxHeaderV2) || header.record_bytes != sizeof(RecordV2) ||
      num_workers < 0 || num_workers > box_format::kWorkerCountMax || num_chips < 0 ||
      num_chips > box_format::kChipCountMax || clock > 1 ||
      box_format::box_bytes(num_workers, num_chips) > segment.capacity()) {
    fail(Errc::corrupt,
         "black box {} of {} bytes: header of {} bytes, records of {} bytes, {} workers, {} chips, "
         "clock {} don't fit together",
         name, segment.capacity(), header.header_bytes, header.record_bytes, num_workers, num_chips,
         clock);
  }
  return {static_cast<TickSource>(clock), num_workers, num_chips};
}

BlackBox::BlackBox(Segment segment)
    : segment_(std::move(segment)), sizes_(read_box_sizes(segment_)) {}

BlackBox BlackBox::open(std::string_view job) {
  return BlackBox(Segment::open(BlackBoxWriter::segment_name(job), true, sizeof(BoxHeaderV2)));
}

BlackBox BlackBox::open_file(const std::string& path) {
  try {
    return from_bytes(read_file_bytes(path, kBoxBytesMax));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
}

BlackBox BlackBox::from_bytes(std::span<const std::byte> bytes) {
  Segment segment = Segment::anonymous(std::max<std::size_t>(bytes.size(), 1));
  std::ranges::copy(bytes, segment.data());
  return BlackBox(std::move(segment));
}

const BoxHeaderV2& BlackBox::header() const {
  return *reinterpret_cast<const BoxHeaderV2*>(segment_.data());
}
std::string BlackBox::job() const { return text_of(header().job); }
std::string BlackBox::host() const { return text_of(header().host); }
std::string BlackBox::boot_id() const { return text_of(header().boot_id); }

bool BlackBox::is_present(int number) const {
  return (load_field(header().present[number / 64]) >> (number % 64) & 1U) != 0;
}

bool BlackBox::has(RingId ring) const {
  if (ring.kind == RingKind::chip) {
    return ring.owner >= 0 && ring.owner < sizes_.num_chips &&
           is_present(1 + sizes_.num_workers + ring.owner);
  }
  return ring.owner >= -1 && ring.owner < sizes_.num_workers && is_present(1 + ring.owner);
}

std::vector<RingId> BlackBox::rings() const {
  std::vector<RingId> found;
  const auto add = [&](RingKind kind, int owner) {
    if (has({kind, owner})) found.push_back({kind, owner});
  };
  for (int worker = -1; worker < sizes_.num_workers; ++worker) {
    add(RingKind::loop, worker);
    add(RingKind::link, worker);
    add(RingKind::shared, worker);
  }
  for (int chip = 0; chip < sizes_.num_chips; ++chip) add(RingKind::chip, chip);
  return found;
}

BlackBox::Ring BlackBox::find(RingId ring) const {
  if (!has(ring)) {
    fail(Errc::not_found, "black box of job {}: the {} of {} has no ring", job(),
         to_string(ring.kind), ring.owner);
  }
  if (ring.kind == RingKind::chip) {
    const std::byte* const page =
        segment_.data() + box_format::chip_offset(sizes_.num_workers, ring.owner);
    return {&reinterpret_cast<const ChipPageV2*>(page)->head,
            reinterpret_cast<const RecordV2*>(page + sizeof(ChipPageV2)), box_format::kChipRecords};
  }
  const std::byte* const memory = segment_.data() + box_format::process_offset(1 + ring.owner);
  const auto& page = *reinterpret_cast<const ProcessPageV2*>(memory);
  const auto* const records =
      reinterpret_cast<const RecordV2*>(memory + sizeof(ProcessPageV2) + sizeof(TextAreaV2));
  constexpr std::uint32_t kLinkBegin = box_format::kLoopRecords;
  constexpr std::uint32_t kSharedBegin = kLinkBegin + box_format::kLinkRecords;
  switch (ring.kind) {
    case RingKind::loop: return {&page.loop, records, box_format::kLoopRecords};
    case RingKind::link: return {&page.link, records + kLinkBegin, box_format::kLinkRecords};
    default: return {&page.shared, records + kSharedBegin, box_format::kSharedRecords};
  }
}

std::string_view BlackBox::text(std::uint32_t id) const {
  const auto process = static_cast<int>(id / kTextBytes);
  const std::size_t begin = id % kTextBytes;
  if (begin < offsetof(TextAreaV2, bytes) || process > sizes_.num_workers || !is_present(process)) {
    return {};
  }
  if (const auto known = texts_.find(id); known != texts_.end()) return known->second;
  const std::byte* const area =
      segment_.data() + box_format::process_offset(process) + sizeof(ProcessPageV2);
  const std::uint64_t used = std::min<std::uint64_t>(
      load_field(reinterpret_cast<const TextAreaV2*>(area)->used), kTextBytes);
  std::uint16_t length = 0;
  if (begin + sizeof length > used) return {};
  std::memcpy(&length, area + begin, sizeof length);
  if (length > used - begin - sizeof length) return {};
  const char* const first = reinterpret_cast<const char*>(area) + begin + sizeof length;
  return texts_.emplace(id, as_utf8({first, length})).first->second;
}

std::vector<Event> BlackBox::events(RingId id) const {
  const Ring ring = find(id);
  std::vector<Copy> copies;
  for (std::uint32_t i = 0; i < ring.capacity; ++i) {
    Copy one;
    if (copy(ring.records[i], one)) copies.push_back(one);
  }
  std::ranges::stable_sort(copies, {}, &Copy::tick);
  const TickScale clocks = scale();
  std::vector<Event> events;
  events.reserve(copies.size());
  for (const Copy& one : copies) {
    const auto kind = static_cast<EventKind>(one.words[1] & 0xff);
    if (to_string(kind) == "unknown") continue;
    const auto peer = static_cast<std::uint16_t>(one.words[1] >> 16);
    const std::uint64_t value = one.words[3];
    events.push_back({.at_ns = clocks.monotonic_ns(one.tick),
                      .kind = kind,
                      .flags = static_cast<std::uint8_t>(one.words[1] >> 8),
                      .peer = peer == box_format::kNoPeer ? -1 : int{peer},
                      .text = text(static_cast<std::uint32_t>(one.words[1] >> 32)),
                      .number = one.words[2] << 16 >> 16,
                      .value = kind == EventKind::leave ? clocks.duration_ns(value) : value,
                      .step = static_cast<std::uint16_t>(one.words[2] >> 48)});
  }
  return events;
}

std::vector<LedgerEntry> BlackBox::ledger(int chip) const {
  const TickScale clocks = scale();
  const RecordV2* const records = find({RingKind::chip, chip}).records;
  const auto* const entries =
      reinterpret_cast<const LedgerEntryV2*>(records + box_format::kChipRecords);
  std::vector<LedgerEntry> ledger;
  for (std::uint32_t i = 0; i < box_format::kLedgerEntries; ++i) {
    const LedgerEntryV2& stored = entries[i];
    LedgerEntry entry{.text = text(load_field(stored.text)),
                      .count = load_field(stored.count),
                      .times_last = load_field(stored.times_last),
                      .waited_ns = clocks.duration_ns(load_field(stored.waited))};
    if (entry.count == 0) continue;
    for (std::uint32_t b = 0; b < LedgerEntryV2::kBuckets; ++b) {
      const std::uint64_t from = b == 0 ? 0 : std::uint64_t{1} << (b + 7);
      entry.waits.push_back({clocks.duration_ns(from), load_field(stored.histogram[b])});
    }
    ledger.push_back(std::move(entry));
  }
  return ledger;
}

std::vector<std::uint64_t> BlackBox::waited_for_ns(int chip) const {
  const TickScale clocks = scale();
  const Ring ring = find({RingKind::chip, chip});
  const auto& page = *reinterpret_cast<const ChipPageV2*>(ring.head);
  std::vector<std::uint64_t> waited;
  for (int other = 0; other < sizes_.num_chips; ++other) {
    waited.push_back(clocks.duration_ns(load_field(page.waited_for[other])));
  }
  return waited;
}

std::uint64_t BlackBox::written(RingId ring) const { return load_field(find(ring).head->next); }

std::uint64_t BlackBox::step(RingId ring) const { return load_field(find(ring).head->step); }

Position BlackBox::position(int chip) const {
  const std::uint64_t word = load_field(find({RingKind::chip, chip}).head->position);
  return {text(static_cast<std::uint32_t>(word)), static_cast<std::uint32_t>(word >> 32)};
}

TraceLevel BlackBox::level() const { return static_cast<TraceLevel>(load_field(header().level)); }

TickScale BlackBox::scale() const {
  std::vector<ClockPairV2> pairs = copy_pairs(header());
  const std::string here = read_boot_id();
  // A single pair gives no rate. For a job of this host that has just begun, the second pair is
  // made here.
  if (pairs.size() == 1 && !here.empty() && here == boot_id()) {
    pairs.push_back(read_clock_pair(sizes_.ticks));
  }
  return {sizes_.ticks, std::move(pairs)};
}

LedgerSums sum_up(std::span<const LedgerEntry> ledger) {
  LedgerSums sums;
  for (const LedgerEntry& entry : ledger) {
    sums.calls += entry.count;
    sums.times_last += entry.times_last;
    sums.waited_ns += entry.waited_ns;
  }
  return sums;
}

}  // namespace weft
