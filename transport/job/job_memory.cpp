#include "transport/job/job_memory.hpp"

#include <sched.h>

#include <array>
#include <atomic>
#include <cstring>
#include <new>

#include <weft/tensor/error.hpp>

#include "transport/job/control_format.hpp"
#include "transport/memory/text_words.hpp"
#include "transport/memory/wait.hpp"

namespace weft {
namespace {

constexpr std::size_t kReasonBytes = sizeof(ControlHeader::abort_reason);

std::string arena_name(std::string_view job, int chip) {
  return fmt::format("weft-{}-chip-{}", job, chip);
}

/// Returns the bytes of all mailboxes of a chip: two for each group.
std::size_t all_mailbox_bytes(int num_chips) {
  return group_mask_count(num_chips) * 2 * kMailboxBytes;
}

std::size_t all_slot_ring_bytes(int num_chips) {
  return group_mask_count(num_chips) * kSlotRingBytes;
}

/// Returns the bytes of a chip's segment: its arena, and the memory behind the arena.
std::size_t segment_bytes(int num_chips, std::size_t arena_capacity) {
  return arena_capacity + all_mailbox_bytes(num_chips) + all_slot_ring_bytes(num_chips) +
         kDirectoryBytes;
}

bool sizes_ok(std::int64_t num_chips, std::size_t arena_capacity) {
  return num_chips >= 1 && num_chips <= kLocalChipCountMax &&
         arena_capacity >= 2 * kArenaCapacityUnit && arena_capacity % kArenaCapacityUnit == 0 &&
         arena_capacity <= std::size_t{1} << 46;
}

void require_valid(const JobMemoryOptions& options) {
  if (sizes_ok(options.num_chips, options.arena_capacity)) return;
  fail(Errc::invalid_argument,
       "job memory: num_chips = {}, arena_capacity = {}; expected 1 to {} chips and a multiple of "
       "{} bytes, at least {}",
       options.num_chips, options.arena_capacity, kLocalChipCountMax, kArenaCapacityUnit,
       2 * kArenaCapacityUnit);
}

void write_control(Segment& segment, const JobMemoryOptions& options) {
  segment.reserve(0, segment.capacity());
  auto* header = new (segment.data()) ControlHeader{};
  header->version = kControlVersion;
  header->num_chips = options.num_chips;
  header->arena_capacity = options.arena_capacity;
  header->generation.store(1, std::memory_order_relaxed);
  header->crowded = options.num_chips > usable_cores() ? 1 : 0;
  options.control_root.copy(header->control_root, sizeof(header->control_root) - 1);
}

/// The sizes in a header. Each is loaded only once, because another process could change it after
/// it was checked.
struct Sizes {
  std::int32_t num_chips;
  std::uint64_t arena_capacity;
};

template <typename T>
T load_once(const T& field) {
  return std::atomic_ref<T>(const_cast<T&>(field)).load(std::memory_order_relaxed);
}

/// Reads the header. Checks every size against the mapping.
Sizes read_control(const Segment& segment) {
  const auto& header = *reinterpret_cast<const ControlHeader*>(segment.data());
  const std::uint64_t magic = header.magic.load(std::memory_order_acquire);
  if (magic == 0) fail(Errc::not_found, "segment {} is still being made", segment.name());
  if (magic != kControlMagic) {
    fail(Errc::corrupt, "segment {} isn't a control segment: its first word is {:#x}",
         segment.name(), magic);
  }
  if (header.version != kControlVersion) {
    fail(Errc::version, "segment {}: version {}, this program reads version {}", segment.name(),
         header.version, kControlVersion);
  }
  const Sizes sizes{load_once(header.num_chips), load_once(header.arena_capacity)};
  if (!sizes_ok(sizes.num_chips, sizes.arena_capacity) ||
      segment.capacity() < control_bytes(sizes.num_chips)) {
    fail(Errc::corrupt,
         "segment {} of {} bytes: {} chips with arenas of {} bytes don't fit together",
         segment.name(), segment.capacity(), sizes.num_chips, sizes.arena_capacity);
  }
  return sizes;
}

}  // namespace

std::string control_segment_name(std::string_view job) {
  return fmt::format("weft-{}-control", job);
}

JobMemory::JobMemory(Segment control, std::vector<Segment> arenas, std::size_t arena_capacity)
    : control_(std::move(control)), arenas_(std::move(arenas)), arena_capacity_(arena_capacity) {
  register_light_fence();
}

JobMemory JobMemory::create(const JobMemoryOptions& options) {
  require_valid(options);
  std::vector<std::string> made;
  const auto make = [&made](const std::string& name, std::size_t capacity) {
    Segment segment = Segment::create(name, capacity);
    made.push_back(name);
    return segment;
  };
  try {
    Segment control = make(control_segment_name(options.job), control_bytes(options.num_chips));
    write_control(control, options);
    std::vector<Segment> arenas;
    for (int chip = 0; chip < options.num_chips; ++chip) {
      arenas.push_back(make(arena_name(options.job, chip),
                            segment_bytes(options.num_chips, options.arena_capacity)));
    }
    JobMemory memory(std::move(control), std::move(arenas), options.arena_capacity);
    memory.control().magic.store(kControlMagic, std::memory_order_release);
    return memory;
  } catch (...) {
    for (const std::string& name : made) Segment::remove(name);
    throw;
  }
}

JobMemory JobMemory::open(std::string_view job) {
  Segment control = Segment::open(control_segment_name(job), false, sizeof(ControlHeader));
  const Sizes sizes = read_control(control);
  std::vector<Segment> arenas;
  for (int chip = 0; chip < sizes.num_chips; ++chip) {
    arenas.push_back(Segment::open(arena_name(job, chip), false,
                                   segment_bytes(sizes.num_chips, sizes.arena_capacity)));
  }
  return JobMemory(std::move(control), std::move(arenas), sizes.arena_capacity);
}

JobMemory JobMemory::anonymous(const JobMemoryOptions& options) {
  require_valid(options);
  Segment control = Segment::anonymous(control_bytes(options.num_chips));
  write_control(control, options);
  std::vector<Segment> arenas;
  for (int chip = 0; chip < options.num_chips; ++chip) {
    arenas.push_back(Segment::anonymous(segment_bytes(options.num_chips, options.arena_capacity)));
  }
  return JobMemory(std::move(control), std::move(arenas), options.arena_capacity);
}

int JobMemory::remove(std::string_view job) noexcept {
  try {
    int count = 0;
    for (const std::string& name : Segment::list(fmt::format("weft-{}-", job))) {
      if (Segment::remove(name)) ++count;
    }
    return count;
  } catch (...) {
    return 0;  // out of memory or descriptors: the names remain, as after a kill
  }
}

std::string JobMemory::control_root_of(std::string_view job) {
  try {
    const Segment control = Segment::open(control_segment_name(job), true, sizeof(ControlHeader));
    (void)read_control(control);
    const auto& header = *reinterpret_cast<const ControlHeader*>(control.data());
    return {header.control_root, ::strnlen(header.control_root, sizeof(header.control_root))};
  } catch (const Error&) {
    return {};
  }
}

void JobMemory::hide_arenas_from_children() {
  for (Segment& arena : arenas_) arena.hide_from_children();
}

void JobMemory::remove_arena_names() const noexcept {
  for (const Segment& arena : arenas_) Segment::remove(arena.name());
}

ControlHeader& JobMemory::control() const {
  return *reinterpret_cast<ControlHeader*>(control_.data());
}

std::uint32_t JobMemory::generation() const noexcept {
  return control().generation.load(std::memory_order_acquire);
}
bool JobMemory::crowded() const noexcept { return control().crowded != 0; }

void JobMemory::begin_generation(std::uint64_t step) {
  for (int chip = 0; chip < num_chips(); ++chip) {
    for (std::size_t group = 0; group < group_mask_count(num_chips()); ++group) {
      const auto mask = static_cast<std::uint16_t>(group << 1);
      GroupLine& line = group_line(mask, chip);
      const std::uint32_t has_ring = line.has_ring.load(std::memory_order_relaxed);
      if (has_ring != 0) new (&slot_ring(mask, chip)) SlotRing{};
      new (&line) GroupLine{};
      line.has_ring.store(has_ring, std::memory_order_relaxed);
    }
    new (&call_record(chip)) CallRecord{};
    new (&commit_line(chip)) CommitLine{};
    commit_line(chip).step.store(step, std::memory_order_relaxed);
    // All hosts begin at this step.
    commit_line(chip).far.store(step, std::memory_order_relaxed);
  }
  control().abort_state.store(AbortState::running, std::memory_order_relaxed);
  control().generation.fetch_add(1, std::memory_order_release);
}

void JobMemory::reserve(int chip, std::size_t offset, std::size_t bytes) {
  if (chip < 0 || chip >= num_chips() || offset > arena_capacity() ||
      bytes > arena_capacity() - offset) {
    fail(Errc::invalid_argument,
         "can't reserve [{}, {} + {}) in the arena of chip {}: there are {} chips with {} bytes "
         "each",
         offset, offset, bytes, chip, num_chips(), arena_capacity());
  }
  arenas_[static_cast<std::size_t>(chip)].reserve(offset, bytes);
}

void JobMemory::abort(std::string_view reason) {
  ControlHeader& header = control();
  AbortState none = AbortState::running;
  if (!header.abort_state.compare_exchange_strong(none, AbortState::writing_reason)) return;
  const auto words = pack_text<kReasonBytes / 8>(reason);
  for (std::size_t i = 0; i < words.size(); ++i) {
    header.abort_reason[i].store(words[i], std::memory_order_relaxed);
  }
  header.abort_state.store(AbortState::aborted, std::memory_order_release);
  wake_sleepers();
}

bool JobMemory::aborted() const noexcept {
  return control().abort_state.load(std::memory_order_acquire) != AbortState::running;
}

std::string JobMemory::abort_reason() const {
  constexpr int kTryCount = 1000;
  const ControlHeader& header = control();
  if (!aborted()) return {};
  for (int i = 0; header.abort_state.load(std::memory_order_acquire) != AbortState::aborted; ++i) {
    if (i == kTryCount) return "aborted by a process that died before it wrote the reason";
    sched_yield();
  }
  std::array<std::uint64_t, kReasonBytes / 8> words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = header.abort_reason[i].load(std::memory_order_relaxed);
  }
  return unpack_text(words);
}

/// Wakes all chips. A thread that goes to sleep just after this call notices the abort after
/// kSleepSlice.
void JobMemory::wake_sleepers() const {
  for (std::size_t group = 0; group < group_mask_count(num_chips()); ++group) {
    for (int chip = 0; chip < num_chips(); ++chip) {
      GroupLine& line = group_line(static_cast<std::uint16_t>(group << 1), chip);
      if (line.sleepers.load(std::memory_order_relaxed) != 0) wake_all(line.woken);
      if (line.slot_sleepers.load(std::memory_order_relaxed) != 0) wake_all(line.slot_woken);
    }
  }
  for (int chip = 0; chip < num_chips(); ++chip) wake_all(commit_line(chip).woken);
}

std::byte* JobMemory::control_of(int chip) const {
  WEFT_CHECK(chip >= 0 && chip < num_chips(), chip);
  return control_.data() + sizeof(ControlHeader) +
         static_cast<std::size_t>(chip) * control_bytes_per_chip(num_chips());
}

GroupLine& JobMemory::group_line(std::uint16_t mask, int chip) const {
  const std::size_t group = mask >> 1U;
  WEFT_CHECK(group < group_mask_count(num_chips()), mask);
  return reinterpret_cast<GroupLine*>(control_of(chip))[group];
}

CommitLine& JobMemory::commit_line(int chip) const {
  return *reinterpret_cast<CommitLine*>(control_of(chip) +
                                        group_mask_count(num_chips()) * sizeof(GroupLine));
}

CallRecord& JobMemory::call_record(int chip) const {
  std::byte* end = control_of(chip) + control_bytes_per_chip(num_chips());
  return *(reinterpret_cast<CallRecord*>(end) - 1);
}

std::size_t JobMemory::mailboxes_offset(std::uint16_t mask) const {
  return arena_capacity() + (mask >> 1U) * 2 * kMailboxBytes;
}

std::byte* JobMemory::mailboxes(std::uint16_t mask, int chip) const {
  return arena(chip) + mailboxes_offset(mask);
}

void JobMemory::reserve_mailboxes(std::uint16_t mask, int chip) {
  arenas_.at(static_cast<std::size_t>(chip)).reserve(mailboxes_offset(mask), 2 * kMailboxBytes);
}

std::size_t JobMemory::slot_ring_offset(std::uint16_t mask) const {
  return arena_capacity() + all_mailbox_bytes(num_chips()) + (mask >> 1U) * kSlotRingBytes;
}

SlotRing& JobMemory::slot_ring(std::uint16_t mask, int chip) const {
  return *reinterpret_cast<SlotRing*>(arena(chip) + slot_ring_offset(mask));
}

void JobMemory::reserve_slot_ring(std::uint16_t mask, int chip) {
  arenas_.at(static_cast<std::size_t>(chip)).reserve(slot_ring_offset(mask), kSlotRingBytes);
  group_line(mask, chip).has_ring.store(1, std::memory_order_relaxed);
}

std::size_t JobMemory::directory_offset() const {
  return arena_capacity() + all_mailbox_bytes(num_chips()) + all_slot_ring_bytes(num_chips());
}

void JobMemory::reserve_directory(int chip, std::size_t offset, std::size_t bytes) {
  WEFT_CHECK(offset + bytes <= kDirectoryBytes, offset, bytes);
  arenas_.at(static_cast<std::size_t>(chip)).reserve(directory_offset() + offset, bytes);
}

}  // namespace weft
