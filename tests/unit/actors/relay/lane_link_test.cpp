/// Tests the connection between two hosts of an actor system, over a TLS session in this process.

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/socket.h>

#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "actors/relay/lane_link.hpp"
#include "tests/support/expect_error.hpp"
#include "transport/lanes/lane_message.hpp"
#include "transport/wires/secret_context.hpp"

namespace weft::lane_link_test {
namespace {

using Bytes = std::vector<std::byte>;
using Random = std::mt19937_64;

Bytes random_bytes(std::size_t count, Random& random) {
  Bytes bytes(count);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random());
  return bytes;
}

/// Returns both ends of a session whose handshake is done. Their sockets are non-blocking.
std::pair<TlsSession, TlsSession> sessions() {
  const std::string secret(32, 's');
  const TlsContext server = secret_context(secret, "lane link", TlsSide::server);
  const TlsContext client = secret_context(secret, "lane link", TlsSide::client);
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) std::abort();
  std::pair made{TlsSession(server, fds[0]), TlsSession(client, fds[1])};
  auto here = TlsProgress::wants_read;
  auto there = TlsProgress::wants_read;
  while (here != TlsProgress::done || there != TlsProgress::done) {
    there = made.second.handshake();
    here = made.first.handshake();
  }
  return made;
}

/// The parts of a frame that a test sends, and compares with those that arrive.
struct Content {
  FrameHead head{};
  Bytes body{};
  std::vector<Bytes> tensors{};
};

std::unique_ptr<HostFrame> frame_of(const Content& content) {
  auto frame = std::make_unique<HostFrame>();
  auto tensors = std::make_shared<std::vector<Bytes>>(content.tensors);
  frame->head = content.head;
  frame->bytes.resize(tensors->size() * sizeof(std::uint64_t));
  for (std::size_t i = 0; i < tensors->size(); ++i) {
    const std::uint64_t size = (*tensors)[i].size();
    std::memcpy(frame->bytes.data() + i * sizeof size, &size, sizeof size);
    frame->tensors.emplace_back((*tensors)[i]);
  }
  frame->bytes.insert(frame->bytes.end(), content.body.begin(), content.body.end());
  frame->keeps = tensors;
  return frame;
}

Content random_content(Random& random, std::uint64_t number) {
  Content content;
  content.head = {.kind = FrameKind::message,
                  .from = {.slot = static_cast<std::uint32_t>(random() % kPeerCountMax)},
                  .to = {.slot = static_cast<std::uint32_t>(random() % kPeerCountMax)},
                  .heading = {.call = number},
                  .port = static_cast<std::uint32_t>(random() % kPortCountMax)};
  content.body = random_bytes(random() % 3 == 0 ? 0 : random() % kBodyBytesMax, random);
  for (std::uint64_t i = random() % 4; i > 0; --i) {
    content.tensors.push_back(random_bytes(1 + random() % (std::size_t{1} << 18), random));
  }
  return content;
}

/// Two ends of a link. The memory of arriving tensors is in `arrived`.
class LaneLinkTest : public ::testing::Test {
 protected:
  std::optional<ArrivingFrame> take(const LaneLink::MayTake& may_take) {
    return there_.take(may_take, [this](ArrivingFrame& frame) {
      ++allocations_;
      std::vector<std::span<std::byte>> spans;
      if (drops_) return spans;
      arrived_.emplace_back();
      for (const std::uint64_t size : frame.sizes) arrived_.back().emplace_back(size);
      for (Bytes& tensor : arrived_.back()) spans.emplace_back(tensor);
      return spans;
    });
  }
  /// Lets both ends send and receive until a frame arrives.
  ArrivingFrame await() {
    for (;;) {
      here_.take([](const FrameHead&) { return true; }, {});
      if (auto frame = take([](const FrameHead&) { return true; })) return std::move(*frame);
      if (const auto why = there_.why_lost()) throw std::runtime_error(*why);
    }
  }
  void expect(const Content& sent, const ArrivingFrame& frame) {
    EXPECT_EQ(frame.head.heading.call, sent.head.heading.call);
    EXPECT_EQ(frame.head.from.slot, sent.head.from.slot);
    EXPECT_EQ(frame.head.port, sent.head.port);
    EXPECT_TRUE(frame.body == sent.body);
    if (drops_ || sent.tensors.empty()) return;
    EXPECT_TRUE(arrived_.back() == sent.tensors);
  }

  std::pair<TlsSession, TlsSession> sessions_ = sessions();
  LaneLink here_{1, std::move(sessions_.first)};
  LaneLink there_{0, std::move(sessions_.second)};
  std::deque<std::vector<Bytes>> arrived_;
  int allocations_ = 0;
  bool drops_ = false;
};

TEST_F(LaneLinkTest, CarriesFramesInOrderWithTheirBytes) {
  Random random(1);
  std::deque<Content> sent;
  for (std::uint64_t number = 0; number < 200; ++number) {
    sent.push_back(random_content(random, number));
    here_.send(frame_of(sent.back()));
    if (random() % 2 == 0) continue;
    expect(sent.front(), await());
    sent.pop_front();
  }
  for (; !sent.empty(); sent.pop_front()) expect(sent.front(), await());
  EXPECT_FALSE(here_.has_unsent());
}

TEST_F(LaneLinkTest, PassesOverTensorsThatNobodyWants) {
  Random random(2);
  for (std::uint64_t number = 0; number < 50; ++number) {
    const Content content = random_content(random, number);
    drops_ = number % 2 == 0;
    here_.send(frame_of(content));
    expect(content, await());
  }
}

TEST_F(LaneLinkTest, HoldsAFrameBeforeItsTensorsHaveMemory) {
  Random random(3);
  Content held = random_content(random, 7);
  held.tensors = {random_bytes(1000, random)};
  here_.send(frame_of(held));
  while (!there_.is_held()) {
    EXPECT_FALSE(take([](const FrameHead& head) { return head.heading.call != 7; }));
  }
  EXPECT_EQ(allocations_, 0);
  expect(held, await());
  EXPECT_EQ(allocations_, 1);
}

TEST_F(LaneLinkTest, ForgetsItsFramesWhenItEnds) {
  Random random(4);
  here_.send(frame_of(random_content(random, 1)));
  here_.end("the host is lost");
  EXPECT_EQ(here_.why_lost(), "the host is lost");
  EXPECT_FALSE(here_.has_unsent());
  EXPECT_TRUE(here_.send(frame_of(random_content(random, 2))));
  try {
    for (;;) await();
  } catch (const std::runtime_error&) {
  }
  EXPECT_TRUE(there_.why_lost());
}

/// Sends bytes that aren't those of a frame, and returns whether they are refused.
bool refuses(const Bytes& bytes) {
  auto [first, second] = sessions();
  TlsWire wire;
  wire.begin(std::move(first));
  wire.send(bytes);
  LaneLink link(5, std::move(second));
  std::vector<Bytes> arrived;
  const auto allocate = [&](ArrivingFrame& frame) {
    std::vector<std::span<std::byte>> spans;
    for (const std::uint64_t size : frame.sizes) {
      if (size > (std::size_t{1} << 20)) return std::vector<std::span<std::byte>>{};
    }
    for (const std::uint64_t size : frame.sizes) arrived.emplace_back(size);
    for (Bytes& tensor : arrived) spans.emplace_back(tensor);
    return spans;
  };
  try {
    while (wire.progress()) link.take([](const FrameHead&) { return true; }, allocate);
    for (int i = 0; i < 20; ++i) link.take([](const FrameHead&) { return true; }, allocate);
    return false;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::corrupt);
    EXPECT_NE(std::string_view(error.what()).find("host 5 sends"), std::string_view::npos);
    return true;
  }
}

Bytes bytes_of(const FrameHead& head, std::size_t more = 0) {
  Bytes bytes(sizeof head + more);
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes;
}

TEST(LaneLink, RefusesFramesThatNoHostOfThisBuildSends) {
  const FrameHead good{.kind = FrameKind::beat};
  EXPECT_FALSE(refuses(bytes_of(good)));
  const auto with = [&](const auto& change) {
    FrameHead head = good;
    change(head);
    return bytes_of(head);
  };
  EXPECT_TRUE(refuses(with([](FrameHead& head) { head.magic ^= 1U; })));
  EXPECT_TRUE(refuses(with([](FrameHead& head) { head.kind = {}; })));
  EXPECT_TRUE(refuses(with([](FrameHead& head) { head.kind = static_cast<FrameKind>(6); })));
  EXPECT_TRUE(refuses(with([](FrameHead& head) { head.body_bytes = 0xffffffff; })));
  EXPECT_TRUE(refuses(with([](FrameHead& head) { head.block_count = kMessageBlocksMax + 1; })));
  EXPECT_TRUE(refuses(with([](FrameHead& head) { head.from.slot = kPeerCountMax; })));
  EXPECT_TRUE(refuses(with([](FrameHead& head) { head.to.slot = kPeerCountMax; })));
  EXPECT_TRUE(refuses(with([](FrameHead& head) { head.port = kPortCountMax; })));
  Bytes huge = bytes_of({.kind = FrameKind::message, .block_count = 1}, sizeof(std::uint64_t));
  const std::uint64_t size = kFrameBlockBytesMax + 1;
  std::memcpy(huge.data() + sizeof(FrameHead), &size, sizeof size);
  EXPECT_TRUE(refuses(huge));
}

TEST(LaneLink, TakesOrRefusesAnyBytes) {
  Random random(5);
  int refused = 0;
  constexpr int kTimes = 300;
  for (int time = 0; time < kTimes; ++time) {
    Bytes bytes = bytes_of({.kind = FrameKind::message, .body_bytes = 16, .block_count = 1}, 1000);
    for (std::uint64_t change = random() % 4 + 1; change > 0; --change) {
      bytes[random() % 96] = static_cast<std::byte>(random());
    }
    refused += refuses(bytes) ? 1 : 0;
  }
  EXPECT_GT(refused, kTimes / 10);
  EXPECT_LT(refused, kTimes);
}

}  // namespace
}  // namespace weft::lane_link_test
