#include "transport/state/state_directory.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include <weft/tensor/error.hpp>

#include "spmd/passes/partition.hpp"

namespace weft {
namespace {

constexpr std::size_t kSlotBytes = kDirectoryBytes / kDirectorySlotCount;
/// The value of `first` in a slot that has no version.
constexpr std::uint64_t kNoStep = std::numeric_limits<std::uint64_t>::max();

}  // namespace

/// The header of a slot. The slot serves the versions `first` to `last`. They all have the same
/// places.
struct alignas(64) StateDirectory::DirectorySlot {
  std::atomic<std::uint64_t> first;  ///< storing it publishes the table and `last`
  std::atomic<std::uint64_t> last;
  std::atomic<std::uint64_t> bytes;  ///< size of the table
};

StateDirectory::StateDirectory(JobMemory& memory, const Mesh& mesh, int chip)
    : memory_(memory), mesh_(mesh), chip_(chip) {
  for (int i = 0; i < kDirectorySlotCount; ++i) {
    memory_.reserve_directory(chip_, static_cast<std::size_t>(i) * kSlotBytes,
                              sizeof(DirectorySlot));
  }
}

StateDirectory::DirectorySlot& StateDirectory::slot(int index) const {
  return *reinterpret_cast<DirectorySlot*>(memory_.directory(chip_) +
                                           static_cast<std::size_t>(index) * kSlotBytes);
}

std::byte* StateDirectory::table(int index) const {
  return reinterpret_cast<std::byte*>(&slot(index)) + sizeof(DirectorySlot);
}

bool StateDirectory::holds(int index, std::span<const StateEntry> state,
                           std::uint64_t revision) const {
  const auto& written = written_[static_cast<std::size_t>(index)];
  return written && written->revision == revision &&
         std::ranges::equal(written->offsets, state, {}, {}, &StateEntry::offset);
}

bool StateDirectory::write(std::uint64_t step, std::span<const StateEntry> state,
                           std::uint64_t revision, const std::vector<StoredLoader>& loaders,
                           std::span<const CommandMark> commands) {
  if (holds(last_, state, revision) && slot(last_).first.load(std::memory_order_relaxed) <= step) {
    slot(last_).last.store(step, std::memory_order_release);
    return false;
  }
  last_ = (last_ + 1) % kDirectorySlotCount;
  DirectorySlot& next = slot(last_);
  // The process may be killed between any two stores, so later stores must not move before this
  // one.
  next.first.exchange(kNoStep, std::memory_order_acq_rel);
  // Versions usually alternate between the same places, so the slot usually has the right table
  // already.
  if (!holds(last_, state, revision)) store(last_, state, loaders, commands, revision);
  next.last.store(step, std::memory_order_relaxed);
  next.first.store(step, std::memory_order_release);
  return true;
}

void StateDirectory::store(int index, std::span<const StateEntry> state,
                           const std::vector<StoredLoader>& loaders,
                           std::span<const CommandMark> commands, std::uint64_t revision) {
  const std::vector<std::byte> bytes = encode_state_table(state, loaders, commands);
  if (bytes.size() > kSlotBytes - sizeof(DirectorySlot)) {
    fail(Errc::no_space,
         "a directory of {} tensors of parameters and optimizer state and of {} DeviceLoaders "
         "takes {} bytes, but there is room for {}: combine small tensors into one, and make "
         "each loader only once",
         state.size(), loaders.size(), bytes.size(), kSlotBytes - sizeof(DirectorySlot));
  }
  memory_.reserve_directory(chip_, static_cast<std::size_t>(index) * kSlotBytes,
                            sizeof(DirectorySlot) + bytes.size());
  auto& written = written_[static_cast<std::size_t>(index)];
  written.reset();
  std::memcpy(table(index), bytes.data(), bytes.size());
  slot(index).bytes.store(bytes.size(), std::memory_order_relaxed);
  written.emplace(Written{.revision = revision});
  for (const StateEntry& entry : state) written->offsets.push_back(entry.offset);
}

std::optional<int> StateDirectory::find(std::uint64_t step) const {
  for (int i = 0; i < kDirectorySlotCount; ++i) {
    const std::uint64_t first = slot(i).first.load(std::memory_order_acquire);
    // A slot that was never written has 0 in `first` and `last`, as if it had version 0. But its
    // table has no bytes.
    const bool has_table = slot(i).bytes.load(std::memory_order_relaxed) != 0;
    if (has_table && first <= step && step <= slot(i).last.load(std::memory_order_relaxed)) {
      return i;
    }
  }
  return {};
}

std::optional<StateTable> StateDirectory::read(std::uint64_t step) const {
  const std::optional<int> found = find(step);
  if (!found) return {};
  const std::uint64_t bytes = slot(*found).bytes.load(std::memory_order_relaxed);
  if (bytes > kSlotBytes - sizeof(DirectorySlot)) {
    fail(Errc::corrupt, "the state directory of chip {} has a table of {} bytes", chip_, bytes);
  }
  StateTable read = decode_state_table({table(*found), bytes}, mesh_);
  for (const StateEntry& entry : read.tensors) require_in_arena(entry);
  return read;
}

void StateDirectory::require_in_arena(const StateEntry& entry) const {
  const auto bytes =
      static_cast<std::uint64_t>(chip_type(entry.type, entry.sharding, mesh_).bytes());
  const std::uint64_t end = memory_.arena_capacity();
  if (entry.offset % 64 == 0 && entry.offset >= memory_.buffers_offset() && entry.offset <= end &&
      bytes <= end - entry.offset) {
    return;
  }
  fail(Errc::corrupt, "the state directory of chip {} says that '{}' has {} bytes at {} of {}",
       chip_, entry.name, bytes, entry.offset, end);
}

void StateDirectory::clear() {
  for (int i = 0; i < kDirectorySlotCount; ++i) {
    slot(i).first.store(kNoStep, std::memory_order_release);
  }
}

void StateDirectory::keep_only(std::uint64_t step) {
  const std::optional<int> kept = find(step);
  for (int i = 0; i < kDirectorySlotCount; ++i) {
    if (i == kept) continue;
    slot(i).first.store(kNoStep, std::memory_order_release);
  }
  if (!kept) return;
  last_ = *kept;
  slot(last_).last.store(step, std::memory_order_release);
}

}  // namespace weft
