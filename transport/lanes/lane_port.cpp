#include "transport/lanes/lane_port.hpp"

#include <bit>
#include <cstring>

#include <weft/tensor/error.hpp>

#include "transport/memory/wait.hpp"

namespace weft {
namespace {

constexpr std::uint32_t kWords = kPeerCountMax / 64;
/// So many lanes stay watched while they are empty, so that senders that send again and again don't
/// have to set their bits each time. A thread that waits looks at each of them.
constexpr int kWatchedWhenEmpty = 4;

/// Returns the number in the entry after the first `taken` ones, before the sender writes there.
constexpr std::uint64_t number_before(std::uint64_t taken) {
  return taken >= kLaneEntryCount ? taken + 1 - kLaneEntryCount : 0;
}

}  // namespace

LanePort::LanePort(Peers& peers, Blocks& blocks, std::uint32_t port)
    : peers_(&peers), blocks_(&blocks), port_(port), head_(&peers.own().port(port)) {}

bool LanePort::has_news() const noexcept {
  for (std::uint32_t word = 0; word < kWords; ++word) {
    for (std::uint64_t lanes = head_->watched[word].load(std::memory_order_seq_cst); lanes != 0;
         lanes &= lanes - 1) {
      if (has_entry(word * 64 + static_cast<std::uint32_t>(std::countr_zero(lanes)))) return true;
    }
  }
  return false;
}

/// Returns whether the lane has an entry that take_from() hasn't seen. It may be a corrupt one.
bool LanePort::has_entry(std::uint32_t sender) const noexcept {
  const Lane& lane = peers_->own().lane(port_, sender);
  const std::uint64_t taken = taken_[sender];
  return lane.entries[taken % kLaneEntryCount].number.load(std::memory_order_seq_cst) !=
         number_before(taken);
}

std::optional<InMessage> LanePort::take() {
  const std::uint32_t first = (last_ + 1) % kPeerCountMax;
  // The word with the first lane is visited twice: for the lanes from there on, and for the others.
  for (std::uint32_t step = 0; step <= kWords; ++step) {
    const std::uint32_t word = (first / 64 + step) % kWords;
    std::uint64_t lanes = head_->watched[word].load(std::memory_order_seq_cst);
    const std::uint64_t from_first = ~std::uint64_t{0} << (first % 64);
    if (step == 0) lanes &= from_first;
    if (step == kWords) lanes &= ~from_first;
    for (; lanes != 0; lanes &= lanes - 1) {
      const std::uint32_t lane = word * 64 + static_cast<std::uint32_t>(std::countr_zero(lanes));
      if (!has_entry(lane) && !unwatch(lane)) continue;
      last_ = lane;
      if (std::optional<InMessage> message = take_from(lane)) return message;
    }
  }
  return std::nullopt;
}

/// Stops watching an empty lane, unless few lanes are watched. Returns whether an entry has come
/// meanwhile. The lane is then still watched.
bool LanePort::unwatch(std::uint32_t sender) {
  int watched = 0;
  for (const auto& word : head_->watched) {
    watched += std::popcount(word.load(std::memory_order_relaxed));
  }
  if (watched <= kWatchedWhenEmpty) return false;
  std::atomic<std::uint64_t>& word = head_->watched[sender / 64];
  const std::uint64_t bit = std::uint64_t{1} << (sender % 64);
  word.fetch_and(~bit, std::memory_order_seq_cst);
  if (!has_entry(sender)) return false;
  word.fetch_or(bit, std::memory_order_seq_cst);
  return true;
}

std::optional<InMessage> LanePort::take_from(std::uint32_t sender) {
  Lane& lane = peers_->own().lane(port_, sender);
  const std::uint64_t awaited = taken_[sender] + 1;
  const Entry& entry = lane.entries[taken_[sender] % kLaneEntryCount];
  const std::uint64_t number = entry.number.load(std::memory_order_seq_cst);
  if (number != awaited) {
    if (number == number_before(taken_[sender])) return std::nullopt;
    // The sender sets the bit when it sends again.
    head_->watched[sender / 64].fetch_and(~(std::uint64_t{1} << (sender % 64)),
                                          std::memory_order_seq_cst);
    fail(Errc::corrupt, "port {}: process {} wrote number {} where message {} is expected", port_,
         sender, number, awaited);
  }
  std::optional<InMessage> message(std::in_place);
  message->from = {.slot = sender, .incarnation = peers_->table().life(sender).incarnation};
  try {
    read(entry, *message);
  } catch (...) {
    for (const BlockId block : message->blocks()) blocks_->release(block);
    skip(sender);
    throw;
  }
  skip(sender);
  return message;
}

/// Tells the sender that its entry was taken.
void LanePort::skip(std::uint32_t sender) {
  ++taken_[sender];
  Lane& lane = peers_->own().lane(port_, sender);
  lane.head.store(taken_[sender], std::memory_order_seq_cst);
  if (lane.sender_waits.load(std::memory_order_seq_cst) != 0) give_room(lane, taken_[sender]);
}

/// Wakes a sender that waits for room once half of the lane is free, because a wake for each
/// message would cost too much.
void LanePort::give_room(Lane& lane, std::uint64_t taken) {
  constexpr std::uint64_t kHalf = kLaneEntryCount / 2;
  const Entry& ahead = lane.entries[(taken + kHalf - 1) % kLaneEntryCount];
  if (ahead.number.load(std::memory_order_seq_cst) == taken + kHalf) return;
  lane.sender_waits.store(0, std::memory_order_seq_cst);
  lane.room.fetch_add(1, std::memory_order_seq_cst);
  wake_all(lane.room);
}

/// Copies and checks the entry. Other processes may write to it and to long bodies at any time, so
/// each word is loaded only once, and the checks read the copy.
void LanePort::read(const Entry& entry, InMessage& message) {
  message.heading = {.call = entry.call, .target = entry.target, .kind = entry.kind};
  const std::atomic_ref<const std::uint16_t> is_in_block(entry.is_in_block);
  const std::atomic_ref<const std::uint32_t> first_block(entry.blocks[0]);
  if (is_in_block.load(std::memory_order_relaxed) != 0) {
    const BlockId block{first_block.load(std::memory_order_relaxed)};
    blocks_->take(block);
    try {
      read_long(block, message);
    } catch (...) {
      blocks_->release(block);
      throw;
    }
    blocks_->release(block);
    return;
  }
  const std::uint32_t bytes =
      std::atomic_ref<const std::uint32_t>(entry.body_bytes).load(std::memory_order_relaxed);
  const std::uint16_t count =
      std::atomic_ref<const std::uint16_t>(entry.block_count).load(std::memory_order_relaxed);
  if (bytes > kInlineBodyBytes || count > kInlineBlockCount) {
    fail(Errc::corrupt, "port {}: an entry says {} bytes and {} blocks; it has room for {} and {}",
         port_, bytes, count, kInlineBodyBytes, kInlineBlockCount);
  }
  std::memcpy(message.short_body_.data(), entry.body, bytes);
  message.short_bytes_ = static_cast<std::uint8_t>(bytes);
  for (std::uint16_t i = 0; i < count; ++i) {
    const BlockId block{
        std::atomic_ref<const std::uint32_t>(entry.blocks[i]).load(std::memory_order_relaxed)};
    blocks_->take(block);
    message.short_blocks_[message.short_count_++] = block;
  }
}

void LanePort::read_long(BlockId block, InMessage& message) {
  const std::span<const std::byte> bytes = blocks_->bytes(block);
  LongBody head{};
  if (bytes.size() < sizeof(head)) {
    fail(Errc::corrupt, "port {}: a message lies in a block of {} bytes", port_, bytes.size());
  }
  std::memcpy(&head, bytes.data(), sizeof(head));
  const std::size_t list_bytes = head.block_count * sizeof(std::uint32_t);
  if (head.body_bytes > kBodyBytesMax || head.block_count > kMessageBlocksMax ||
      sizeof(head) + list_bytes + head.body_bytes > bytes.size()) {
    fail(Errc::corrupt, "port {}: a message says {} bytes and {} blocks, in a block of {} bytes",
         port_, head.body_bytes, head.block_count, bytes.size());
  }
  std::vector<BlockId> blocks(head.block_count);
  if (list_bytes > 0) std::memcpy(blocks.data(), bytes.data() + sizeof(head), list_bytes);
  const auto body = bytes.subspan(sizeof(head) + list_bytes, head.body_bytes);
  message.long_body_.assign(body.begin(), body.end());
  message.long_blocks_.reserve(blocks.size());
  for (const BlockId each : blocks) {
    blocks_->take(each);
    message.long_blocks_.push_back(each);
  }
}

void LanePort::wait(int spins, std::chrono::nanoseconds at_most) {
  const auto must_return = [&] {
    return has_news() || woken_.exchange(false, std::memory_order_seq_cst);
  };
  for (int i = 0; i < spins; ++i) {
    if (has_news() || woken_.load(std::memory_order_relaxed)) break;
    pause_cpu();
  }
  const std::uint32_t seen = head_->rung.load(std::memory_order_seq_cst);
  if (must_return()) return;
  head_->asleep.store(1, std::memory_order_seq_cst);
  if (!must_return()) sleep_on(head_->rung, seen, at_most);
  head_->asleep.store(0, std::memory_order_relaxed);
}

void LanePort::wake() noexcept {
  woken_.store(true, std::memory_order_seq_cst);
  head_->rung.fetch_add(1, std::memory_order_seq_cst);
  wake_all(head_->rung);
}

void LanePort::attend() noexcept { head_->asleep.store(0, std::memory_order_relaxed); }

void LanePort::listen() noexcept { head_->asleep.store(1, std::memory_order_seq_cst); }

std::uint32_t LanePort::rings() const noexcept {
  return head_->rung.load(std::memory_order_seq_cst);
}

void LanePort::sleep(std::uint32_t seen, std::chrono::nanoseconds at_most) const noexcept {
  sleep_on(head_->rung, seen, at_most);
}

std::optional<InMessage> LanePort::take_from_dead(std::uint32_t dead) {
  const std::uint64_t opened = head_->opened[dead / 64].load(std::memory_order_seq_cst);
  if ((opened >> (dead % 64) & 1) == 0) return std::nullopt;
  return take_from(dead);
}

void LanePort::clear(std::uint32_t dead) {
  const std::uint64_t opened = head_->opened[dead / 64].load(std::memory_order_seq_cst);
  if ((opened >> (dead % 64) & 1) == 0) return;
  Lane& lane = peers_->own().lane(port_, dead);
  for (Entry& entry : lane.entries) entry.number.store(0, std::memory_order_relaxed);
  lane.sender_waits.store(0, std::memory_order_relaxed);
  lane.head.store(0, std::memory_order_release);
  taken_[dead] = 0;
}

}  // namespace weft
