#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/child_process.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"
#include "transport/lanes/burial.hpp"
#include "transport/lanes/lane_node.hpp"

namespace weft::lanes_test {
namespace {

using testing::expect_error;
using testing::unique_job;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A system whose processes are nodes within this process. Its memory is removed at the end.
class Lanes : public ::testing::Test {
 protected:
  ~Lanes() override { PeerTable::remove(system_); }

  std::unique_ptr<LaneNode> join(PeerMemoryOptions options = {.port_count = 2}) {
    const PeerId peer = table_.add();
    auto node = std::make_unique<LaneNode>(table_, peer, options);
    table_.mark(peer.slot, PeerState::alive);
    return node;
  }
  static bool send(LaneNode& from, LaneNode& to, std::string_view body,
                   std::vector<BlockId> blocks = {}, LaneHeading heading = {}) {
    return from.sender(to.self(), 0)
        ->send({.heading = heading, .body = bytes_of(body), .blocks = blocks});
  }
  static std::optional<InMessage> take(LaneNode& node) { return node.port(0).take(); }
  static std::string take_text(LaneNode& node) {
    const auto message = take(node);
    return message ? text_of(message->body()) : "nothing";
  }
  static BlockId block(LaneNode& owner, std::string_view text) {
    const BlockId made = owner.blocks().allocate(text.size());
    std::memcpy(owner.blocks().writable(made).data(), text.data(), text.size());
    return made;
  }
  static std::string text(LaneNode& reader, BlockId block, std::size_t size) {
    return text_of(reader.blocks().bytes(block).first(size));
  }
  static const LedgerRow& row(LaneNode& owner, BlockId block) {
    return owner.peers().own().ledger_row(block.index());
  }
  void bury(LaneNode& keeper, PeerId dead, const std::vector<LaneNode*>& living) {
    burial_.emplace(table_, keeper.peers(), dead);
    for (LaneNode* node : living) {
      for (std::uint32_t port = 0; port < node->port_count(); ++port) {
        node->settle(port, [&](const InMessage& message) { last_.push_back(message); });
      }
    }
    is_free_ = burial_->finish();
  }

  std::string system_ = unique_job();
  PeerTable table_ = PeerTable::create(system_);
  std::vector<InMessage> last_;  ///< messages that were taken while a death was settled
  std::optional<Burial> burial_;
  bool is_free_ = false;  ///< the slot of the last buried peer is free again
};

TEST_F(Lanes, RefuseBlocksThatLieOutsideOfTheirHeap) {
  constexpr std::uint64_t kHeap = std::uint64_t{1} << 24;
  const auto owner = join({.port_count = 2, .heap_bytes = kHeap});
  const auto reader = join();
  const BlockId honest = block(*owner, "text");
  ASSERT_TRUE(send(*owner, *reader, "", {honest}));
  const auto message = take(*reader);
  EXPECT_EQ(text(*reader, honest, 4), "text");

  LedgerRow& its = owner->peers().own().ledger_row(honest.index());
  const std::uint64_t offset = its.offset.load();
  const std::uint64_t bytes = its.bytes.load();
  const auto refuse = [&](std::uint64_t its_offset, std::uint64_t its_bytes) {
    its.offset.store(its_offset);
    its.bytes.store(its_bytes);
    expect_error(Errc::corrupt,
                 {fmt::format("block 0 of process 0 has the range [{0}, {0} + {1}) of a heap of "
                              "16777216 bytes",
                              its_offset, its_bytes)},
                 [&] { reader->blocks().bytes(honest); });
  };
  refuse(kHeap + 1, 0);
  refuse(kHeap, 1);
  refuse(0, kHeap + 1);
  refuse(offset, ~std::uint64_t{0});
  refuse(~std::uint64_t{0}, bytes);
  its.offset.store(0);
  its.bytes.store(kHeap);
  EXPECT_EQ(reader->blocks().bytes(honest).size(), kHeap) << "the whole heap is no lie";
  its.offset.store(offset);
  its.bytes.store(bytes);
  EXPECT_EQ(text(*reader, honest, 4), "text");
}

TEST_F(Lanes, DeliverMessagesInOrderWithTheirHeadings) {
  const auto a = join();
  const auto b = join();
  EXPECT_FALSE(take(*b));
  EXPECT_TRUE(send(*a, *b, "one", {}, {.call = 7, .target = 8, .kind = 9}));
  EXPECT_TRUE(send(*a, *b, ""));
  EXPECT_TRUE(send(*a, *b, "three"));
  const auto first = take(*b);
  ASSERT_TRUE(first);
  EXPECT_EQ(text_of(first->body()), "one");
  EXPECT_EQ(first->from, a->self());
  EXPECT_EQ(first->heading.call, 7U);
  EXPECT_EQ(first->heading.target, 8U);
  EXPECT_EQ(first->heading.kind, 9U);
  EXPECT_EQ(take_text(*b), "");
  EXPECT_EQ(take_text(*b), "three");
  EXPECT_EQ(take_text(*b), "nothing");
}

TEST_F(Lanes, TakeFromSendersInTurn) {
  const auto a = join();
  const auto b = join();
  const auto c = join();
  for (const char* text : {"a1", "a2", "a3"}) send(*a, *c, text);
  send(*b, *c, "b1");
  send(*c, *c, "c1");  // a process may send to itself
  EXPECT_EQ(take_text(*c), "a1");
  EXPECT_EQ(take_text(*c), "b1");
  EXPECT_EQ(take_text(*c), "c1");
  EXPECT_EQ(take_text(*c), "a2");
  EXPECT_EQ(take_text(*c), "a3");
}

TEST_F(Lanes, RefuseAMessageWhenTheyAreFullAndKeepIt) {
  const auto a = join();
  const auto b = join();
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (std::uint32_t i = 0; i < kLaneEntryCount; ++i) {
      ASSERT_TRUE(send(*a, *b, std::to_string(i)));
    }
    EXPECT_FALSE(send(*a, *b, "one too many"));
    EXPECT_EQ(a->sender(b->self(), 0)->waiting(), kLaneEntryCount);
    for (std::uint32_t i = 0; i < kLaneEntryCount; ++i) EXPECT_EQ(take_text(*b), std::to_string(i));
    EXPECT_FALSE(take(*b));
  }
}

TEST_F(Lanes, CarryLongBodiesAndManyBlocks) {
  const auto a = join();
  const auto b = join();
  const std::string body(kBodyBytesMax, 'x');
  std::vector<BlockId> blocks;
  for (std::size_t i = 0; i < kMessageBlocksMax; ++i) {
    blocks.push_back(block(*a, fmt::format("block {:02}", i)));
  }
  ASSERT_TRUE(send(*a, *b, body, blocks));
  const auto message = take(*b);
  ASSERT_TRUE(message);
  EXPECT_EQ(text_of(message->body()), body);
  ASSERT_EQ(message->blocks().size(), kMessageBlocksMax);
  for (std::size_t i = 0; i < kMessageBlocksMax; ++i) {
    EXPECT_EQ(text(*b, message->blocks()[i], 8), fmt::format("block {:02}", i));
  }
}

TEST_F(Lanes, RefuseWhatNoMessageCanHave) {
  const auto a = join();
  const auto b = join();
  expect_error(Errc::invalid_argument, {"a message of 65537 bytes and 0 blocks: expected at most"},
               [&] { send(*a, *b, std::string(kBodyBytesMax + 1, 'x')); });
  expect_error(Errc::invalid_argument, {"0 bytes and 65 blocks"}, [&] {
    send(*a, *b, "", std::vector<BlockId>(kMessageBlocksMax + 1, block(*a, "x")));
  });
  expect_error(Errc::invalid_argument, {"has 2 ports, and none of number 2"},
               [&] { a->sender(b->self(), 2); });
}

TEST_F(Lanes, ABlockIsFreeOnceNobodyHoldsIt) {
  const auto a = join();
  const auto b = join();
  const BlockId made = block(*a, "shared");
  send(*a, *b, "", {made});
  a->blocks().release(made);
  EXPECT_EQ(a->blocks().count(made), 1U);  // one hold, which is the message's
  const auto message = take(*b);
  EXPECT_EQ(b->blocks().count(made), 1U);
  a->release_taken();
  EXPECT_EQ(a->blocks().count(made), 0U);
  EXPECT_FALSE(is_free(row(*a, made)));
  EXPECT_NE(a->blocks().allocate(6), made);
  EXPECT_EQ(text(*b, made, 6), "shared");
  b->blocks().release(made);
  EXPECT_TRUE(is_free(row(*a, made)));
  EXPECT_EQ(a->blocks().allocate(6), made);
}

TEST_F(Lanes, ABlockThatComesBackIsOneBlock) {
  const auto a = join();
  const auto b = join();
  const BlockId made = block(*a, "round trip");
  a->blocks().hold(made);
  for (int i = 0; i < 3; ++i) {
    send(*a, *b, "", {made});
    for (int held = i == 0 ? 2 : 1; held > 0; --held) a->blocks().release(made);
    const auto there = take(*b);
    a->release_taken();
    EXPECT_EQ(a->blocks().count(made), 0U);
    send(*b, *a, "", {made});
    b->blocks().release(made);
    const auto back = take(*a);
    b->release_taken();
    EXPECT_EQ(text(*a, made, 10), "round trip");
  }
  a->blocks().release(made);
  EXPECT_EQ(a->blocks().allocate(10), made);
  EXPECT_NE(a->blocks().allocate(10), made);
}

TEST_F(Lanes, AFullHeapIsAnErrorThatSaysHowMuchIsUsed) {
  const auto a = join({.port_count = 1, .heap_bytes = 4 * kBlockBytesMin});
  std::vector<BlockId> made;
  for (int i = 0; i < 4; ++i) made.push_back(a->blocks().allocate(1));
  expect_error(Errc::no_space, {"has 4 blocks, which use 16384 of 16384 bytes"},
               [&] { a->blocks().allocate(1); });
  a->blocks().release(made[2]);
  EXPECT_EQ(a->blocks().allocate(1), made[2]);
}

TEST_F(Lanes, ReadersCantWriteToBlocks) {
  const auto a = join();
  const auto b = join();
  send(*a, *b, "", {block(*a, "mine")});
  const auto message = take(*b);
  auto* bytes = const_cast<std::byte*>(b->blocks().bytes(message->blocks()[0]).data());
  EXPECT_DEATH(*bytes = std::byte{1}, "");
}

TEST_F(Lanes, SkipAMessageThatCantBe) {
  const auto a = join();
  const auto b = join();
  const auto corrupted = [&](std::string_view words, auto corrupt) {
    send(*a, *b, "x");
    Lane& lane = b->peers().own().lane(0, a->self().slot);
    const std::uint64_t taken = lane.head.load();
    corrupt(lane.entries[taken % kLaneEntryCount]);
    expect_error(Errc::corrupt, {words}, [&] { take(*b); });
    send(*a, *b, "next");
    EXPECT_EQ(take_text(*b), "next");
  };
  corrupted("an entry says 89 bytes", [](Entry& entry) { entry.body_bytes = 89; });
  corrupted("and 3 blocks", [](Entry& entry) { entry.block_count = 3; });
  corrupted("a message has block 5 of process 0, which has 0 blocks", [](Entry& entry) {
    entry.block_count = 1;
    entry.blocks[0] = BlockId::of(0, 5).word;
  });
  corrupted("a message has block 16777215", [](Entry& entry) {
    entry.is_in_block = 1;
    entry.blocks[0] = 0xff'ffff;
  });
}

TEST_F(Lanes, AWakeEndsAWaitThatHasNotBegun) {
  const auto a = join();
  a->port(0).wake();
  a->port(0).wait(0, std::chrono::hours(1));
  std::jthread waker([&] { a->port(0).wake(); });
  a->port(0).wait(0, std::chrono::hours(1));
}

TEST_F(Lanes, AMessageWakesASleepingTaker) {
  const auto a = join();
  const auto b = join();
  std::jthread sender([&] {
    for (int i = 0; i < 1000; ++i) {
      while (!send(*a, *b, std::to_string(i))) std::this_thread::yield();
    }
  });
  for (int i = 0; i < 1000; ++i) {
    std::optional<InMessage> message = take(*b);
    while (!message) {
      b->port(0).wait(i % 2 == 0 ? 0 : 100, std::chrono::hours(1));
      message = take(*b);
    }
    EXPECT_EQ(text_of(message->body()), std::to_string(i));
  }
}

/// A port watches at most four empty lanes. The other senders must say that they have sent.
TEST_F(Lanes, MessagesOfManySendersArriveAgainAndAgain) {
  const auto taker = join();
  std::vector<std::unique_ptr<LaneNode>> senders(9);
  for (auto& sender : senders) sender = join();
  for (int round = 0; round < 3; ++round) {
    for (auto& sender : senders) {
      ASSERT_TRUE(send(*sender, *taker, "a"));
      ASSERT_TRUE(send(*sender, *taker, "b"));
    }
    std::string texts;
    while (taker->port(0).has_news()) texts += take_text(*taker);
    EXPECT_EQ(texts, "aaaaaaaaabbbbbbbbb");
    EXPECT_EQ(take_text(*taker), "nothing");
    int watched = 0;
    for (const auto& word : taker->peers().own().port(0).watched)
      watched += std::popcount(word.load());
    EXPECT_EQ(watched, 4);
  }
  ASSERT_TRUE(send(*senders[8], *taker, "one"));
  ASSERT_TRUE(send(*senders[0], *taker, "two"));
  EXPECT_TRUE(taker->port(0).has_news());
  EXPECT_EQ(take_text(*taker), "two");
  EXPECT_EQ(take_text(*taker), "one");
}

/// Senders send while the taker, which has nothing to do in between, stops watching their lanes.
TEST_F(Lanes, NoMessageIsMissedWhileLanesAreUnwatched) {
  constexpr int kSenders = 6;
  constexpr int kMessages = 20'000;
  const auto taker = join();
  std::vector<std::unique_ptr<LaneNode>> nodes(kSenders);
  for (auto& node : nodes) node = join();
  std::vector<std::jthread> threads;
  for (auto& node : nodes) {
    threads.emplace_back([&sender = *node, &taker] {
      for (int i = 0; i < kMessages; ++i) {
        while (!send(sender, *taker, "x")) std::this_thread::yield();
      }
    });
  }
  for (int taken = 0; taken < kSenders * kMessages;) {
    if (take(*taker)) {
      ++taken;
    } else {
      taker->port(0).wait(10, std::chrono::seconds(60));
    }
  }
  EXPECT_FALSE(taker->port(0).has_news());
}

TEST_F(Lanes, TheirBytesStay) {
  const auto taker = join({.port_count = 1, .heap_bytes = std::size_t{1} << 20});
  const auto sender = join({.port_count = 1, .heap_bytes = std::size_t{1} << 20});
  const BlockId tensor = block(*sender, "tensor");
  send(*sender, *taker, "short", {tensor}, {.call = 7, .target = 8, .kind = 9});
  send(*sender, *taker, std::string(kInlineBodyBytes + 1, 'l'), {}, {.call = 10});
  taker->peers().own().call(0).store(11);
  EXPECT_EQ(take_text(*taker), "short");

  std::string bytes;
  const auto add = [&](const auto& object, std::size_t size) {
    bytes.append(reinterpret_cast<const char*>(&object), size);
  };
  PeerMemory& own = taker->peers().own();
  add(own.port(0), sizeof(PortHead));
  add(own.lane(0, sender->self().slot), offsetof(Lane, entries) + 3 * sizeof(Entry));
  add(own.call(0), sizeof(std::uint64_t));
  add(row(*sender, tensor), 2 * sizeof(LedgerRow));  // of the tensor and of the long body
  bytes.append(reinterpret_cast<const char*>(sender->peers().own().heap()), kBlockBytesMin + 128);
  testing::expect_golden("lane-v4.bin", bytes);
}

TEST_F(Lanes, WhatADeadProcessSentStillArrives) {
  const auto keeper = join();
  auto victim = join();
  const PeerId dead = victim->self();
  const BlockId made = block(*victim, "last words");
  send(*victim, *keeper, "with a block", {made});
  send(*victim, *keeper, std::string(200, 'l'), {made});
  victim.reset();
  bury(*keeper, dead, {keeper.get()});
  ASSERT_EQ(last_.size(), 2U);
  EXPECT_EQ(text(*keeper, last_[0].blocks()[0], 10), "last words");
  EXPECT_EQ(text_of(last_[1].body()), std::string(200, 'l'));
  EXPECT_FALSE(is_free_);  // the keeper holds a block of the heap
  keeper->blocks().release(made);
  keeper->blocks().release(made);
  EXPECT_TRUE(burial_->finish());
  const auto next = join();
  EXPECT_EQ(next->self(), (PeerId{.slot = dead.slot, .incarnation = dead.incarnation + 1}));
  send(*next, *keeper, "the next one");
  EXPECT_EQ(take_text(*keeper), "the next one");
}

TEST_F(Lanes, ALongMessageOfADeadProcessNeedsNoBlocks) {
  const auto keeper = join();
  auto victim = join();
  const PeerId dead = victim->self();
  send(*victim, *keeper, std::string(200, 'l'));
  victim.reset();
  bury(*keeper, dead, {keeper.get()});
  ASSERT_EQ(last_.size(), 1U);
  EXPECT_EQ(text_of(last_[0].body()), std::string(200, 'l'));
  EXPECT_TRUE(is_free_);
}

TEST_F(Lanes, ADeadProcessHoldsNothing) {
  const auto keeper = join();
  auto victim = join();
  const PeerId dead = victim->self();
  const BlockId taken = block(*keeper, "taken");
  const BlockId sent = block(*keeper, "sent");
  send(*keeper, *victim, "", {taken});
  (void)take(*victim);
  send(*keeper, *victim, "", {sent});
  keeper->blocks().release(taken);
  keeper->blocks().release(sent);
  victim.reset();
  bury(*keeper, dead, {keeper.get()});
  EXPECT_TRUE(is_free_);
  EXPECT_TRUE(is_free(row(*keeper, taken)));
  EXPECT_TRUE(is_free(row(*keeper, sent)));
  expect_error(Errc::peer_lost, {"process 1 of the actor system has died"},
               [&] { keeper->sender(dead, 1); });
  keeper->release_taken();
}

TEST_F(Lanes, ASlotIsNotGivenAwayBeforeAllHaveSettled) {
  const auto keeper = join();
  const auto slow = join();
  auto victim = join();
  const PeerId dead = victim->self();
  const BlockId made = block(*victim, "on its way");
  send(*victim, *slow, "", {made});
  victim.reset();
  Burial burial(table_, keeper->peers(), dead);
  keeper->settle(0, [](const InMessage&) {});
  keeper->settle(1, [](const InMessage&) {});
  EXPECT_FALSE(burial.finish());
  EXPECT_EQ(table_.add().slot, 3U);
  slow->settle(0, [&](const InMessage& message) {
    EXPECT_EQ(text(*slow, message.blocks()[0], 10), "on its way");
    slow->blocks().release(message.blocks()[0]);
  });
  EXPECT_FALSE(burial.finish());  // the second port of `slow` hasn't settled
  slow->settle(1, [](const InMessage&) {});
  EXPECT_TRUE(burial.finish());
}

TEST_F(Lanes, TheTableHasRoomForSoManyProcesses) {
  for (std::uint32_t i = 0; i < kPeerCountMax; ++i) EXPECT_EQ(table_.add().slot, i);
  expect_error(Errc::no_space, {"has 256 processes"}, [&] { table_.add(); });
}

}  // namespace
}  // namespace weft::lanes_test
