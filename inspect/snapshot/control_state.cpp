#include "inspect/snapshot/control_state.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include <weft/tensor/error.hpp>

#include "data/files/utf8.hpp"
#include "transport/job/control_format.hpp"
#include "transport/memory/text_words.hpp"

namespace weft {
namespace {

/// Returns the value that begins at `offset`. The bytes needn't be aligned.
template <typename T>
T value_at(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <std::size_t N>
std::string text_at(std::span<const std::byte> bytes, std::size_t offset) {
  return as_utf8(unpack_text(value_at<std::array<std::uint64_t, N>>(bytes, offset)));
}

std::optional<RecordedCall> call_at(std::span<const std::byte> bytes, std::size_t offset) {
  RecordedCall call;
  call.number = value_at<std::uint64_t>(bytes, offset + offsetof(CallRecord, number));
  if (call.number == 0) return call;
  call.words = value_at<CallWords>(bytes, offset + offsetof(CallRecord, words));
  call.name = text_at<CallRecord::kNameWordCount>(bytes, offset + offsetof(CallRecord, name));
  const auto signature = value_at<std::uint64_t>(bytes, offset + offsetof(CallRecord, signature));
  if (signature != signature_of(call.number, digest_of(call.words))) return std::nullopt;
  return call;
}

int checked_chip_count(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(ControlHeader)) {
    fail(Errc::corrupt, "control segment has {} bytes: expected at least {}", bytes.size(),
         sizeof(ControlHeader));
  }
  const auto magic = value_at<std::uint64_t>(bytes, offsetof(ControlHeader, magic));
  if (magic != kControlMagic) {
    fail(Errc::corrupt, "not a control segment: its first word is {:#x}", magic);
  }
  const auto version = value_at<std::uint32_t>(bytes, offsetof(ControlHeader, version));
  if (version != kControlVersion) {
    fail(Errc::version, "control segment has version {}; this program reads version {}", version,
         kControlVersion);
  }
  const auto num_chips = value_at<std::int32_t>(bytes, offsetof(ControlHeader, num_chips));
  if (num_chips < 1 || num_chips > kLocalChipCountMax || bytes.size() < control_bytes(num_chips)) {
    fail(Errc::corrupt, "control segment has {} bytes, which are too few for its {} chips",
         bytes.size(), num_chips);
  }
  return num_chips;
}

ChipControl read_chip(std::span<const std::byte> bytes, int num_chips) {
  const std::size_t groups = group_mask_count(num_chips);
  ChipControl chip;
  for (std::size_t group = 0; group < groups; ++group) {
    const std::size_t line = group * sizeof(GroupLine);
    chip.announced.push_back(value_at<std::uint64_t>(bytes, line + offsetof(GroupLine, announced)));
    chip.messages.push_back(
        {.last = value_at<std::uint64_t>(bytes, line + offsetof(GroupLine, messages)),
         .root = value_at<std::int32_t>(bytes, line + offsetof(GroupLine, root))});
  }
  chip.committed =
      value_at<std::uint64_t>(bytes, groups * sizeof(GroupLine) + offsetof(CommitLine, step));
  chip.call = call_at(bytes, control_bytes_per_chip(num_chips) - sizeof(CallRecord));
  return chip;
}

}  // namespace

bool ControlState::knows(int chip) const {
  const auto index = static_cast<std::size_t>(chip);
  return index < chips.size() && !chips[index].announced.empty();
}

std::uint32_t ControlState::epoch(int chip, AtomMask atoms) const {
  const auto& announced = chips.at(static_cast<std::size_t>(chip)).announced;
  return epoch_of(announced.at(atoms >> 1U));
}

/// Compares epochs by their signed difference, because they may wrap around.
bool ControlState::is_behind(int a, int b, AtomMask atoms) const {
  return static_cast<std::int32_t>(epoch(a, atoms) - epoch(b, atoms)) < 0;
}

bool ControlState::awaits_message(int a, int b, AtomMask atoms) const {
  const auto messages_of = [&](int chip) {
    return chips.at(static_cast<std::size_t>(chip)).messages.at(atoms >> 1U);
  };
  const ChipMessages waiter = messages_of(a);
  if (waiter.root != a) return b == waiter.root && messages_of(b).last < waiter.last;
  return b != a && messages_of(b).last + kSlotCount / 2 < waiter.last + 1;
}

std::uint64_t ControlState::common_step() const {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const ChipControl& chip : chips) {
    if (!chip.announced.empty()) least = std::min(least, chip.committed);
  }
  return least == std::numeric_limits<std::uint64_t>::max() ? 0 : least;
}

ControlState read_control_state(std::span<const std::byte> bytes) {
  const int num_chips = checked_chip_count(bytes);
  ControlState state;
  state.generation = value_at<std::uint32_t>(bytes, offsetof(ControlHeader, generation));
  state.crowded = value_at<std::uint32_t>(bytes, offsetof(ControlHeader, crowded)) != 0;
  const auto aborted = value_at<std::uint32_t>(bytes, offsetof(ControlHeader, abort_state));
  if (aborted != static_cast<std::uint32_t>(AbortState::running)) {
    state.abort_reason = text_at<sizeof(ControlHeader::abort_reason) / 8>(
        bytes, offsetof(ControlHeader, abort_reason));
    if (state.abort_reason.empty()) state.abort_reason = "aborted without a reason";
  }
  const std::size_t chip_bytes = control_bytes_per_chip(num_chips);
  for (int chip = 0; chip < num_chips; ++chip) {
    const std::size_t offset = sizeof(ControlHeader) + static_cast<std::size_t>(chip) * chip_bytes;
    state.chips.push_back(read_chip(bytes.subspan(offset, chip_bytes), num_chips));
  }
  return state;
}

}  // namespace weft
