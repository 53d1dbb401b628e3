#include "transport/blackbox/black_box_writer.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include <weft/tensor/error.hpp>

#include "transport/blackbox/black_box.hpp"
#include "transport/memory/namespaces.hpp"

namespace weft {
namespace {

using box_format::BoxHeaderV2;
using box_format::ChipPageV2;
using box_format::kChipRecords;
using box_format::kLinkRecords;
using box_format::kLoopRecords;
using box_format::kSharedRecords;
using box_format::ProcessPageV2;
using box_format::RecordV2;
using box_format::TextAreaV2;

template <std::size_t N>
void set_text(char (&field)[N], const std::string& text) {
  std::memcpy(field, text.data(), std::min(text.size(), N - 1));
}

void require_valid(const BlackBoxOptions& options) {
  if (options.num_workers >= 0 && options.num_workers <= box_format::kWorkerCountMax &&
      options.num_chips >= 0 && options.num_chips <= box_format::kChipCountMax) {
    return;
  }
  fail(Errc::invalid_argument,
       "black box of job {}: {} workers and {} chips, expected at most {} and {}", options.job,
       options.num_workers, options.num_chips, box_format::kWorkerCountMax,
       box_format::kChipCountMax);
}

}  // namespace

/// The part of the box that a process has: its texts and its rings.
struct BlackBoxWriter::Process {
  Process(std::byte* memory, int number)
      : page(*reinterpret_cast<ProcessPageV2*>(memory)),
        records(memory + sizeof(ProcessPageV2) + sizeof(TextAreaV2)),
        texts(*reinterpret_cast<TextAreaV2*>(memory + sizeof(ProcessPageV2)), number) {}

  ProcessPageV2& page;
  std::byte* records;
  TextArea texts;
};

TraceLevel trace_level_of_environment() {
  const char* const text = std::getenv("WEFT_TRACE");
  const std::string_view level = text == nullptr ? "" : text;
  if (level.empty()) return TraceLevel::sampled;
  if (level == "full") return TraceLevel::full;
  if (level == "off") return TraceLevel::off;
  fail(Errc::invalid_argument,
       "WEFT_TRACE = \"{}\": expected full (events of every step of a plan) or off (no events)",
       level);
}

std::string BlackBoxWriter::segment_name(std::string_view job) {
  return fmt::format("weft-{}-box", job);
}

BlackBoxWriter::BlackBoxWriter(Segment segment, TickSource source, int num_workers, int num_chips)
    : segment_(std::move(segment)),
      source_(source),
      num_workers_(num_workers),
      num_chips_(num_chips) {}
BlackBoxWriter::BlackBoxWriter(BlackBoxWriter&&) noexcept = default;
BlackBoxWriter::~BlackBoxWriter() = default;

BlackBoxWriter BlackBoxWriter::make(Segment segment, const BlackBoxOptions& options) {
  segment.reserve(0, sizeof(BoxHeaderV2));
  BlackBoxWriter box(std::move(segment), options.ticks, options.num_workers, options.num_chips);
  BoxHeaderV2& header = box.header();
  header.version = box_format::kVersion;
  header.header_bytes = sizeof(BoxHeaderV2);
  header.record_bytes = sizeof(RecordV2);
  header.num_workers = options.num_workers;
  header.num_chips = options.num_chips;
  header.clock = static_cast<std::uint32_t>(options.ticks);
  header.level = static_cast<std::uint32_t>(options.level);
  set_text(header.job, options.job);
  set_text(header.host, machine_name());
  set_text(header.boot_id, read_boot_id());
  box.add_clock_pair();
  store_field(header.magic, box_format::kMagic);
  return box;
}

BlackBoxWriter BlackBoxWriter::create(const BlackBoxOptions& options) {
  require_valid(options);
  const std::string name = segment_name(options.job);
  Segment segment =
      Segment::create(name, box_format::box_bytes(options.num_workers, options.num_chips));
  try {
    return make(std::move(segment), options);
  } catch (...) {
    Segment::remove(name);
    throw;
  }
}

BlackBoxWriter BlackBoxWriter::anonymous(const BlackBoxOptions& options) {
  require_valid(options);
  return make(Segment::anonymous(box_format::box_bytes(options.num_workers, options.num_chips)),
              options);
}

BlackBoxWriter BlackBoxWriter::open(std::string_view job) {
  Segment segment = Segment::open(segment_name(job), false, sizeof(BoxHeaderV2));
  const BoxSizes sizes = read_box_sizes(segment);
  return {std::move(segment), sizes.ticks, sizes.num_workers, sizes.num_chips};
}

BoxHeaderV2& BlackBoxWriter::header() const {
  return *reinterpret_cast<BoxHeaderV2*>(segment_.data());
}

void BlackBoxWriter::mark_present(int number) const {
  std::uint64_t& word = header().present[number / 64];
  std::atomic_ref(word).fetch_or(std::uint64_t{1} << (number % 64));
}

BlackBoxWriter::Process& BlackBoxWriter::process(int worker) {
  if (worker < -1 || worker >= num_workers_) {
    fail(Errc::invalid_argument, "black box: worker = {}, but there are {} workers", worker,
         num_workers_);
  }
  const std::lock_guard lock(*mutex_);
  std::unique_ptr<Process>& known = processes_[worker];
  if (known == nullptr) {
    const int number = 1 + worker;
    const std::size_t offset = box_format::process_offset(number);
    segment_.reserve(offset, box_format::kProcessBytes);
    known = std::make_unique<Process>(segment_.data() + offset, number);
    mark_present(number);
  }
  return *known;
}

EventWriter BlackBoxWriter::writer(Process& process, box_format::RingHead& head, std::byte* records,
                                   std::uint32_t capacity) const {
  EventWriter writer;
  writer.head_ = &head;
  writer.records_ = reinterpret_cast<RecordV2*>(records);
  writer.mask_ = capacity - 1;
  writer.source_ = source_;
  writer.level_ = &header().level;
  writer.texts_ = &process.texts;
  return writer;
}

EventWriter BlackBoxWriter::loop(int worker) {
  Process& owner = process(worker);
  return writer(owner, owner.page.loop, owner.records, kLoopRecords);
}

EventWriter BlackBoxWriter::link(int worker) {
  Process& owner = process(worker);
  return writer(owner, owner.page.link, owner.records + sizeof(RecordV2) * kLoopRecords,
                kLinkRecords);
}

EventWriter BlackBoxWriter::shared(int worker) {
  Process& owner = process(worker);
  EventWriter shared =
      writer(owner, owner.page.shared,
             owner.records + sizeof(RecordV2) * (kLoopRecords + kLinkRecords), kSharedRecords);
  shared.is_shared_ = true;
  return shared;
}

std::byte* BlackBoxWriter::chip_memory(int chip) {
  if (chip < 0 || chip >= num_chips_) {
    fail(Errc::invalid_argument, "black box: chip = {}, but there are {} chips", chip, num_chips_);
  }
  const std::size_t offset = box_format::chip_offset(num_workers_, chip);
  segment_.reserve(offset, box_format::kChipBytes);
  mark_present(1 + num_workers_ + chip);
  return segment_.data() + offset;
}

EventWriter BlackBoxWriter::chip(int chip, int worker) {
  std::byte* const memory = chip_memory(chip);
  auto& page = *reinterpret_cast<ChipPageV2*>(memory);
  return writer(process(worker), page.head, memory + sizeof(ChipPageV2), kChipRecords);
}

ArrivalLedger BlackBoxWriter::ledger(int chip) {
  std::byte* const memory = chip_memory(chip);
  std::byte* const entries = memory + sizeof(ChipPageV2) + sizeof(RecordV2) * kChipRecords;
  return ArrivalLedger(*reinterpret_cast<ChipPageV2*>(memory),
                       reinterpret_cast<box_format::LedgerEntryV2*>(entries));
}

void BlackBoxWriter::add_clock_pair() {
  BoxHeaderV2& box = header();
  const std::uint64_t count = load_field(box.pair_count);
  const std::uint64_t number = count == 0 ? 0 : 1 + (count - 1) % (box_format::kClockPairs - 1);
  const box_format::ClockPairV2 now = read_clock_pair(source_);
  store_field(box.pair_sequence, load_field(box.pair_sequence) | 1U);
  box_format::ClockPairV2& pair = box.pairs[number];
  store_field(pair.tick, now.tick);
  store_field(pair.monotonic_ns, now.monotonic_ns);
  store_field(pair.realtime_ns, now.realtime_ns);
  store_field(box.pair_count, count + 1);
  store_field(box.pair_sequence, load_field(box.pair_sequence) + 1);
}

void BlackBoxWriter::set_level(TraceLevel level) {
  store_field(header().level, static_cast<std::uint32_t>(level));
}

}  // namespace weft
