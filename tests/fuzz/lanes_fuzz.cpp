/// Reads the fuzz input as an entry of a lane that another process has written, and as the block
/// with the rest of the message. Bits of the first byte make parts valid or invalid: 1 sets the
/// block's id, 2 sets that the rest of the message is in the block, and 4 and 8 replace the block's
/// offset and its size in the ledger by the last 8 bytes of the input.

#include <algorithm>
#include <cstring>

#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/planted.hpp"
#include "transport/lanes/lane_node.hpp"

namespace weft {
namespace {

/// A system of two processes that are both this one. Slot 1 sends to slot 0.
class System {
 public:
  System() {
    const PeerMemoryOptions options{.port_count = 1, .heap_bytes = std::size_t{1} << 24};
    for (std::unique_ptr<LaneNode>* node : {&taker_, &sender_}) {
      const PeerId peer = table_.add();
      *node = std::make_unique<LaneNode>(table_, peer, options);
      table_.mark(peer.slot, PeerState::alive);
    }
    sender_->sender(taker_->self(), 0);  // opens the lane
    block_ = sender_->blocks().allocate(kBlockBytesMin);
  }
  ~System() { PeerTable::remove(table_.system()); }
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  void take(std::span<const std::byte> bytes) {
    const std::uint8_t valid = bytes.empty() ? 0 : static_cast<std::uint8_t>(bytes[0]);
    bytes = bytes.subspan(std::min<std::size_t>(bytes.size(), 1));
    PeerMemory& memory = taker_->peers().own();
    Lane& lane = memory.lane(0, 1);
    Entry& entry = lane.entries[taken_ % kLaneEntryCount];
    constexpr std::size_t kNumberBytes = sizeof(entry.number);
    const std::size_t fields = std::min(bytes.size(), sizeof(Entry) - kNumberBytes);
    if (fields > 0) {
      std::memcpy(reinterpret_cast<std::byte*>(&entry) + kNumberBytes, bytes.data(), fields);
    }
    const std::span<const std::byte> rest = bytes.subspan(fields);
    const std::span<std::byte> block = sender_->blocks().writable(block_);
    std::ranges::copy(rest.first(std::min(rest.size(), block.size())), block.begin());
    if ((valid & 1U) != 0) entry.blocks[0] = block_.word;
    if ((valid & 2U) != 0) entry.is_in_block = 1;
    LedgerRow& row = sender_->peers().own().ledger_row(block_.index());
    const std::uint64_t offset = row.offset.load();
    const std::uint64_t size = row.bytes.load();
    std::uint64_t lie = 0;
    const std::size_t lie_bytes = std::min(bytes.size(), sizeof(lie));
    if (lie_bytes > 0) std::memcpy(&lie, bytes.last(lie_bytes).data(), lie_bytes);
    if ((valid & 4U) != 0) row.offset.store(lie);
    if ((valid & 8U) != 0) row.bytes.store(lie);
    entry.number.store(++taken_);
    memory.port(0).watched[0].fetch_or(std::uint64_t{1} << 1U);
    read_or_refuse(bytes, [&](std::span<const std::byte>) {
      const auto message = taker_->port(0).take();
      WEFT_CHECK(message && message->body().size() <= kBodyBytesMax, message.has_value());
      for (const BlockId held : message->blocks()) {
        read_or_refuse(bytes, [&](std::span<const std::byte>) { read_ends(held); });
        taker_->blocks().release(held);
      }
    });
    row.offset.store(offset);
    row.bytes.store(size);
    // A refused message is skipped.
    WEFT_CHECK(lane.head.load() == taken_, lane.head.load(), taken_);
  }

 private:
  /// Reads the first and the last byte of a block.
  void read_ends(BlockId block) const {
    const std::span<const std::byte> bytes = taker_->blocks().bytes(block);
    if (bytes.empty()) return;
    const volatile std::byte first = bytes.front();
    const volatile std::byte last = bytes.back();
    (void)first, (void)last;
  }

  PeerTable table_ = PeerTable::create(testing::planted_job());
  std::unique_ptr<LaneNode> taker_;
  std::unique_ptr<LaneNode> sender_;
  BlockId block_{};
  std::uint64_t taken_ = 0;
};

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static weft::System system;
  system.take(std::as_bytes(std::span(data, size)));
  return 0;
}
