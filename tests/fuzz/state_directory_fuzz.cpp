/// Reads the fuzz input as a worker's state directory: three words for each slot, then one table
/// that is copied to all slots, first unchanged and then with a valid checksum.

#include <array>
#include <cstring>

#include "spmd/passes/partition.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "transport/state/state_directory.hpp"

namespace weft {
namespace {

constexpr std::size_t kSlotBytes = kDirectoryBytes / kDirectorySlotCount;
constexpr std::size_t kTableOffset = 64;
constexpr std::size_t kWordsBytes = 24;
constexpr std::size_t kTableBytesMax = 1 << 20;

void read_all(JobMemory& memory, const Mesh& mesh) {
  for (int i = 0; i < kDirectorySlotCount; ++i) {
    std::array<std::uint64_t, 3> words;
    std::memcpy(words.data(), memory.directory(0) + static_cast<std::size_t>(i) * kSlotBytes,
                kWordsBytes);
    for (const std::uint64_t step : {words[0], words[1], words[0] + 1}) {
      read_or_refuse({}, [&](auto) {
        const auto table = StateDirectory(memory, mesh, 0).read(step);
        if (!table) return;
        for (const StateEntry& entry : table->tensors) {
          const auto bytes =
              static_cast<std::uint64_t>(chip_type(entry.type, entry.sharding, mesh).bytes());
          WEFT_CHECK(entry.offset >= memory.buffers_offset() &&
                         bytes <= memory.arena_capacity() - entry.offset,
                     entry.offset, bytes);
        }
      });
    }
  }
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  static JobMemory memory =
      JobMemory::anonymous({.job = "fuzz", .num_chips = 2, .arena_capacity = std::size_t{1} << 20});
  const Mesh mesh({2}, {"data"});
  constexpr std::size_t kAllWords = kDirectorySlotCount * kWordsBytes;
  if (size < kAllWords || size - kAllWords > kTableBytesMax) return 0;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto table = bytes.subspan(kAllWords);
  static std::size_t dirty_bytes = 0;  // the size of the previous input's table, which is cleared
  memory.reserve_directory(0, 0, kDirectoryBytes);
  const auto plant = [&](std::span<const std::byte> text) {
    for (int i = 0; i < kDirectorySlotCount; ++i) {
      std::byte* slot = memory.directory(0) + static_cast<std::size_t>(i) * kSlotBytes;
      std::memset(slot, 0, kTableOffset + dirty_bytes);
      std::ranges::copy(bytes.subspan(static_cast<std::size_t>(i) * kWordsBytes, kWordsBytes),
                        slot);
      std::ranges::copy(text, slot + kTableOffset);
    }
    dirty_bytes = text.size();
    read_all(memory, mesh);
    for (const std::uint64_t step : {std::uint64_t{0}, std::uint64_t{7}}) {
      StateDirectory(memory, mesh, 0).keep_only(step);
      read_all(memory, mesh);
    }
  };
  plant(table);
  if (table.size() < kEnvelopePrefixBytes) return 0;
  const testing::AlignedCopy copy(table);
  std::uint32_t body_bytes = 0;
  std::memcpy(&body_bytes, copy.bytes().data() + 12, sizeof body_bytes);
  seal_envelope(kStateTableFormat,
                copy.bytes().first(std::min(table.size(), kEnvelopePrefixBytes + body_bytes)));
  plant(copy.bytes());
  return 0;
}
