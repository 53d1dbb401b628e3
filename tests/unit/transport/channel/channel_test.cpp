#include "transport/channel/channel.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/child_process.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"
#include "transport/format/shard_frame.hpp"

namespace weft::channel_test {
namespace {

using testing::expect_error;
using testing::expect_golden;
using testing::unique_job;

constexpr std::chrono::milliseconds kLong{60'000};
constexpr WaitPolicy kSleepy{0, {}, kLong};

void publish_text(ChannelWriter& writer, std::string_view text) {
  const std::span<std::byte> room = writer.loan(text.size());
  std::memcpy(room.data(), text.data(), text.size());
  writer.publish();
}
std::string text_of(const ChannelFrame& frame) {
  return {reinterpret_cast<const char*>(frame.bytes().data()), frame.bytes().size()};
}

/// A fixture that makes channels with both sides in this thread. Removes their names at the end.
class ChannelTest : public ::testing::Test {
 protected:
  ~ChannelTest() override { JobMemory::remove(job); }

  ChannelOptions options(int slot_count = 2, std::size_t slot_bytes = 128) const {
    return {.job = job, .name = "rescue", .slot_count = slot_count, .slot_bytes = slot_bytes};
  }
  Channel make(int slot_count = 2) const { return Channel::anonymous(options(slot_count)); }

  std::string job = unique_job();
};

TEST_F(ChannelTest, DeliversFramesInOrder) {
  Channel channel = make(3);
  ChannelWriter writer(channel, kSleepy);
  ChannelReader reader(channel, kSleepy);
  for (const char* text : {"one", "", "three"}) publish_text(writer, text);
  EXPECT_EQ(text_of(*reader.receive()), "one");
  EXPECT_EQ(text_of(*reader.receive()), "");
  const auto third = reader.receive();
  EXPECT_EQ(text_of(*third), "three");
  EXPECT_EQ(third->number(), 3U);
  EXPECT_EQ(writer.count(), 3U);
  EXPECT_EQ(reader.count(), 3U);
}

TEST_F(ChannelTest, SharesFramesBetweenProcesses) {
  Channel channel = Channel::create(options());
  testing::ChildProcess child([this] {
    Channel opened = Channel::open(job, "rescue");
    ChannelWriter writer(opened, kSleepy);
    publish_text(writer, "from a child");
    writer.close();
  });
  ChannelReader reader(channel, kSleepy);
  EXPECT_EQ(text_of(*reader.receive()), "from a child");
  EXPECT_FALSE(reader.receive());
  EXPECT_EQ(child.join(), "");
}

TEST_F(ChannelTest, RoundsItsSlotsUpToWhatAShardFrameWants) {
  const Channel channel = Channel::anonymous(options(2, 65));
  EXPECT_EQ(channel.slot_bytes(), 128U);
  for (const std::uint32_t slot : {0U, 1U}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(channel.slot(slot)) % kSlotAlignment, 0U);
  }
}

TEST_F(ChannelTest, CarriesAShardFrameInPlace) {
  const ShardHeader header{
      .name = "w", .type = {DType::f32, {8}}, .offsets = {4}, .dims = {4}, .mesh_coords = {1}};
  const ShardLayout layout = shard_layout(header);
  Channel channel = Channel::anonymous(options(1, layout.frame_bytes));
  ChannelWriter writer(channel, kSleepy);
  ChannelReader reader(channel, kSleepy);
  const std::span<std::byte> room = writer.loan(layout.frame_bytes);
  std::memset(room.data() + layout.payload_offset, 7, layout.payload_bytes);
  seal_shard_frame(header, room);
  writer.publish();

  const auto frame = reader.receive();
  const ShardView view = view_shard_frame(frame->bytes());
  EXPECT_EQ(view.header, header);
  EXPECT_EQ(view.payload.data(), room.data() + layout.payload_offset);
  EXPECT_EQ(read_shard_frame(frame->bytes()).payload.size(), layout.payload_bytes);
}

TEST_F(ChannelTest, LoansTheSlotThatWasReleasedLast) {
  Channel channel = make(3);
  ChannelWriter writer(channel, kSleepy);
  ChannelReader reader(channel, kSleepy);
  std::vector<ChannelFrame> held;
  for (int i = 0; i < 3; ++i) {
    publish_text(writer, "x");
    held.push_back(*reader.receive());
  }
  const std::byte* released_last = held[1].bytes().data();
  held.erase(held.begin());
  held.erase(held.begin());
  EXPECT_EQ(writer.loan(1).data(), released_last);
}

TEST_F(ChannelTest, HoldsSeveralFramesAndReleasesThemInAnyOrder) {
  Channel channel = make(2);
  ChannelWriter writer(channel, kSleepy);
  ChannelReader reader(channel, kSleepy);
  publish_text(writer, "a");
  publish_text(writer, "b");
  auto a = reader.receive();
  auto b = reader.receive();
  EXPECT_FALSE(writer.try_loan(1));
  b.reset();
  publish_text(writer, "c");
  EXPECT_EQ(text_of(*a), "a");
  EXPECT_EQ(text_of(*reader.receive()), "c");
}

TEST_F(ChannelTest, DoesNotWaitWhereItIsOnlyToTry) {
  Channel channel = make(1);
  ChannelWriter writer(channel, kSleepy);
  ChannelReader reader(channel, kSleepy);
  EXPECT_FALSE(reader.try_receive());
  EXPECT_FALSE(reader.ended());
  publish_text(writer, "x");
  EXPECT_FALSE(writer.try_loan(1));
  reader.try_receive();
  EXPECT_TRUE(writer.try_loan(1));
}

TEST_F(ChannelTest, TakesAnUnpublishedLoanBack) {
  Channel channel = make(1);
  ChannelWriter writer(channel, kSleepy);
  ChannelReader reader(channel, kSleepy);
  EXPECT_EQ(writer.loan(100).size(), 100U);
  EXPECT_EQ(writer.loan(7).size(), 7U);
  writer.publish();
  EXPECT_EQ(reader.receive()->bytes().size(), 7U);
  EXPECT_EQ(writer.count(), 1U);
}

TEST_F(ChannelTest, EndsAfterTheLastFrameOfAWriterThatClosed) {
  Channel channel = make(2);
  ChannelReader reader(channel, kSleepy);
  {
    ChannelWriter writer(channel, kSleepy);
    publish_text(writer, "a");
    publish_text(writer, "b");  // no slot is free now, but close() needs none
    writer.close();
    expect_error(Errc::invalid_argument, {"after close()"}, [&] { writer.loan(1); });
  }
  EXPECT_EQ(text_of(*reader.receive()), "a");
  EXPECT_FALSE(reader.ended());
  EXPECT_EQ(text_of(*reader.receive()), "b");
  EXPECT_FALSE(reader.receive());
  EXPECT_TRUE(reader.ended());
  EXPECT_FALSE(reader.receive());
}

TEST_F(ChannelTest, AWriterThatDidntCloseIsLostAfterItsLastFrame) {
  Channel channel = make(2);
  ChannelReader reader(channel, kSleepy);
  {
    ChannelWriter writer(channel, kSleepy);
    publish_text(writer, "a");
    writer.loan(5);
  }
  EXPECT_EQ(text_of(*reader.receive()), "a");
  for (int i = 0; i < 2; ++i) {
    expect_error(Errc::peer_lost,
                 {"channel 'rescue' of job " + job, fmt::format("writer (process {})", getpid()),
                  "while it was filling frame #2", "1 frames were received"},
                 [&] { reader.receive(); });
  }
}

TEST_F(ChannelTest, AWriterFindsOutThatItsReaderLeft) {
  Channel channel = make(2);
  ChannelWriter writer(channel, kSleepy);
  {
    ChannelReader reader(channel, kSleepy);
    publish_text(writer, "a");
    reader.receive();
    publish_text(writer, "b");
  }
  for (int i = 0; i < 2; ++i) {
    expect_error(
        Errc::peer_lost,
        {fmt::format("reader (process {})", getpid()), "2 frames were published", "1 released"},
        [&] { writer.loan(1); });
  }
}

TEST_F(ChannelTest, NamesWhoWaitsForWhomAndForWhichFrame) {
  constexpr WaitPolicy kShort{1, {}, std::chrono::milliseconds(50)};
  Channel channel = make(1);
  const std::string pid = fmt::format("(process {})", getpid());
  ChannelReader reader(channel, kShort);
  expect_error(Errc::timeout,
               {"the reader " + pid, "channel 'rescue' of job " + job,
                " s for the writer (which hasn't attached yet) to publish frame #1"},
               [&] { reader.receive(); });
  ChannelWriter writer(channel, kShort);
  expect_error(Errc::timeout, {"for the writer " + pid}, [&] { reader.receive(); });
  publish_text(writer, "a");
  expect_error(Errc::timeout,
               {"the writer " + pid, "for the reader " + pid, "one of 1 slots for frame #2"},
               [&] { writer.loan(1); });
  EXPECT_EQ(text_of(*reader.receive()), "a");
  publish_text(writer, "b");
}

TEST_F(ChannelTest, AnAbortOfTheJobEndsAWait) {
  JobMemory memory =
      JobMemory::anonymous({.job = job, .num_chips = 1, .arena_capacity = 2 * kArenaCapacityUnit});
  Channel channel = make();
  ChannelReader reader(channel, kSleepy, &memory);
  memory.abort("worker 3 was killed by signal 9");
  expect_error(Errc::peer_lost,
               {"worker 3 was killed by signal 9", "the reader of channel 'rescue'", "frame #1"},
               [&] { reader.receive(); });
}

TEST_F(ChannelTest, HasOneWriterInItsLife) {
  Channel channel = make();
  const auto expect_refused = [&] {
    expect_error(Errc::invalid_argument, {"already had its writer", std::to_string(getpid())},
                 [&] { ChannelWriter(channel, kSleepy); });
  };
  {
    const ChannelWriter writer(channel, kSleepy);
    expect_refused();
  }
  expect_refused();
  ChannelReader(channel, kSleepy);
}

TEST_F(ChannelTest, RefusesWhatItCantLoan) {
  Channel channel = make();
  ChannelWriter writer(channel, kSleepy);
  expect_error(Errc::invalid_argument, {"129 bytes", "at most 128"}, [&] { writer.loan(129); });
  expect_error(Errc::invalid_argument, {"loan() comes first"}, [&] { writer.publish(); });
}

TEST_F(ChannelTest, RefusesImpossibleOptions) {
  const auto expect_refused = [&](int slot_count, std::size_t slot_bytes) {
    expect_error(Errc::invalid_argument, {"slot_count", "slot_bytes", "rescue"},
                 [&] { Channel::create(options(slot_count, slot_bytes)); });
  };
  expect_refused(0, 64);
  expect_refused(-1, 64);
  expect_refused(static_cast<int>(kSlotCountMax) + 1, 64);
  expect_refused(1, 0);
  expect_refused(1, ~std::size_t{0});
  for (const std::string bad : {"", "a/b", "a-b", "../x", "a b"}) {
    expect_error(Errc::invalid_argument, {"channel name '" + bad + "'"},
                 [&] { Channel::open(job, bad); });
  }
  expect_error(Errc::invalid_argument, {"1 to 64"},
               [&] { Channel::open(job, std::string(65, 'x')); });
}

TEST_F(ChannelTest, IsRemovedWithItsJob) {
  Channel::create(options());
  EXPECT_EQ(Segment::list("weft-" + job), std::vector{Channel::segment_name(job, "rescue")});
  EXPECT_EQ(JobMemory::remove(job), 1);
  expect_error(Errc::not_found, {job}, [&] { Channel::open(job, "rescue"); });
}

TEST_F(ChannelTest, VerifiesWhatItOpens) {
  const Channel channel = Channel::create(options());
  auto& header = *reinterpret_cast<ChannelHeader*>(channel.segment().data());
  const auto expect_refused = [&](auto& field, auto damaged, Errc code) {
    const auto sound = std::exchange(field, damaged);
    expect_error(code, {job}, [&] { Channel::open(job, "rescue"); });
    field = sound;
  };
  expect_refused(header.magic, 0U, Errc::not_found);
  expect_refused(header.magic, 12345U, Errc::corrupt);
  expect_refused(header.version, 2U, Errc::version);
  expect_refused(header.slot_count, 0U, Errc::corrupt);
  expect_refused(header.slot_count, 100U, Errc::corrupt);
  expect_refused(header.slot_count, ~0U, Errc::corrupt);
  expect_refused(header.slot_bytes, 0U, Errc::corrupt);
  expect_refused(header.slot_bytes, 100U, Errc::corrupt);
  expect_refused(header.slot_bytes, 4096U, Errc::corrupt);
  expect_refused(header.slot_bytes, ~std::uint64_t{63}, Errc::corrupt);
  Channel::open(job, "rescue");
}

/// Expects that a side refuses the other side's words after `damage`.
class HostileWord : public ChannelTest {
 protected:
  void expect_corrupt(ChannelRole sender, auto damage) const {
    Channel channel = make();
    ChannelWriter writer(channel, kSleepy);
    ChannelReader reader(channel, kSleepy);
    publish_text(writer, "a");
    auto frame = reader.receive();
    publish_text(writer, "b");
    frame.reset();
    const std::size_t index = sender == ChannelRole::writer ? 1 : 0;
    damage(channel.lane(sender)[index]);
    for (int i = 0; i < 2; ++i) {
      expect_error(Errc::corrupt, {"channel 'rescue' of job " + job, "expected message"}, [&] {
        if (sender == ChannelRole::writer) {
          reader.receive();
        } else {
          writer.loan(1);
        }
      });
    }
  }
};

TEST_F(HostileWord, IsRefusedWhereItsSlotIsNone) {
  for (const ChannelRole sender : {ChannelRole::writer, ChannelRole::reader}) {
    expect_corrupt(sender, [](ChannelWord& word) { word.slot = 2; });
    expect_corrupt(sender, [](ChannelWord& word) { word.slot = 0x8000'0000; });
  }
}

TEST_F(HostileWord, IsRefusedWhereItsFrameLeavesTheSlot) {
  expect_corrupt(ChannelRole::writer, [](ChannelWord& word) { word.bytes = 129; });
  expect_corrupt(ChannelRole::writer, [](ChannelWord& word) { word.bytes = ~std::uint64_t{0}; });
}

TEST_F(HostileWord, IsRefusedWhereItsNumberIsNeitherTheNextNorTheLast) {
  for (const ChannelRole sender : {ChannelRole::writer, ChannelRole::reader}) {
    expect_corrupt(sender, [](ChannelWord& word) { word.number = 77; });
  }
}

TEST_F(HostileWord, IsRefusedWhereTheSlotIsNotTheSenders) {
  Channel channel = make();
  ChannelWriter writer(channel, kSleepy);
  ChannelReader reader(channel, kSleepy);
  publish_text(writer, "a");
  const auto frame = reader.receive();
  publish_text(writer, "b");
  channel.lane(ChannelRole::writer)[1].slot = 0;  // the reader still has this slot
  expect_error(Errc::corrupt, {"slot 0"}, [&] { reader.receive(); });
}

/// Sends up to three frames through two slots without waiting. Calls `damage` before step `at`.
void run_damaged(Channel& channel, int at, const std::function<void()>& damage) {
  const auto in_segment = [&](std::span<const std::byte> bytes) {
    const std::byte* begin = channel.segment().data();
    return bytes.data() >= begin &&
           bytes.data() + bytes.size() <= begin + channel.segment().capacity();
  };
  ChannelWriter writer(channel, kSleepy);
  ChannelReader reader(channel, kSleepy);
  const auto add = [](int sum, std::byte byte) { return sum + static_cast<int>(byte); };
  int place = 0;
  const auto maybe_damage = [&] {
    if (place++ == at) damage();
  };
  for (int i = 0; i < 3; ++i) {
    maybe_damage();
    if (const auto room = writer.try_loan(100)) {
      EXPECT_TRUE(in_segment(*room));
      std::memset(room->data(), i, room->size());
      maybe_damage();
      writer.publish();
    }
    maybe_damage();
    if (const auto frame = reader.try_receive()) {
      EXPECT_TRUE(in_segment(frame->bytes()));
      const auto sum = std::accumulate(frame->bytes().begin(), frame->bytes().end(), 0, add);
      EXPECT_GE(sum, 0);
    }
  }
}

/// A killed process may leave a damaged header to the next process that opens the channel.
TEST_F(ChannelTest, NoFlippedBitOfAHeaderLeadsOutOfTheChannel) {
  const Channel made = Channel::create(options());
  std::byte* const header = made.segment().data();
  int refused = 0;
  for (std::size_t bit = 0; bit < 8 * sizeof(ChannelHeader); ++bit) {
    SCOPED_TRACE(fmt::format("bit {}", bit));
    header[bit / 8] ^= std::byte{1} << (bit % 8);
    try {
      const Channel opened = Channel::open(job, "rescue");
      EXPECT_LE(opened.slot(opened.slot_count() - 1) + opened.slot_bytes(),
                opened.segment().data() + opened.segment().capacity());
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == Errc::corrupt || error.code() == Errc::version) << error.what();
      ++refused;
    }
    header[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  EXPECT_GE(refused, 64 + 32) << "any bit of the magic number or of the version";
}

TEST_F(ChannelTest, NoFlippedBitOfALiveChannelLeadsOutOfIt) {
  const std::size_t bits = 8 * slots_offset(2);
  int refused = 0;
  for (std::size_t bit = 0; bit < bits; ++bit) {
    const int at = static_cast<int>(bit % 9);
    SCOPED_TRACE(fmt::format("bit {} at place {}", bit, at));
    Channel channel = make();
    try {
      run_damaged(channel, at,
                  [&] { channel.segment().data()[bit / 8] ^= std::byte{1} << (bit % 8); });
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == Errc::corrupt || error.code() == Errc::peer_lost) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
}

TEST_F(ChannelTest, BytesAreThoseOfVersionOne) {
  Channel channel = Channel::create(options());
  {
    ChannelWriter writer(channel, kSleepy);
    ChannelReader reader(channel, kSleepy);
    publish_text(writer, "frame one");
    reader.receive();
    publish_text(writer, "frame two");
    writer.close();
  }
  for (const ChannelRole role : {ChannelRole::writer, ChannelRole::reader}) {
    channel.side(role).pid = 4711;
  }
  const Segment& segment = channel.segment();
  expect_golden("channel-v1.bin", std::span(segment.data(), segment.capacity()));
}

TEST_F(ChannelTest, ReadsVersionOne) {
  const std::string golden = testing::read_golden("channel-v1.bin");
  Segment segment = Segment::create(Channel::segment_name(job, "rescue"), golden.size());
  segment.reserve(0, golden.size());
  std::memcpy(segment.data(), golden.data(), golden.size());
  Channel channel = Channel::open(job, "rescue");
  EXPECT_EQ(channel.slot_count(), 2U);
  EXPECT_EQ(channel.slot_bytes(), 128U);
  channel.side(ChannelRole::reader).attached = 0;
  ChannelReader reader(channel, kSleepy);
  EXPECT_EQ(reader.receive()->number(), 1U);
  EXPECT_EQ(text_of(*reader.receive()), "frame two");
  EXPECT_FALSE(reader.receive());
}

}  // namespace
}  // namespace weft::channel_test
