/// Runs one suite of tests with the two sides of a channel as two threads and as two processes.

#include "transport/channel/channel.hpp"

#include <gtest/gtest.h>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weft/tensor/error.hpp>

#include "tests/support/child_process.hpp"

namespace weft::testing::channels_test {
namespace {

constexpr std::chrono::milliseconds kDeadline{60'000};
/// Waiters sleep at once, so that the tests reach the kernel even where a spin would be enough.
constexpr WaitPolicy kSleepy{0, {}, kDeadline};

using SideBody = std::function<void(Channel& channel)>;

/// Runs the two bodies in two threads. This pair and ProcessPair return the texts of the exceptions
/// of both bodies; a text is empty if its body threw nothing.
struct ThreadPair {
  static std::vector<std::string> run(const ChannelOptions& options, const SideBody& write,
                                      const SideBody& read) {
    Channel channel = Channel::anonymous(options);
    std::vector<std::string> failures(2);
    const auto run_side = [&channel](const SideBody& body, std::string& failure) {
      try {
        body(channel);
      } catch (const std::exception& error) {
        failure = error.what();
      }
    };
    std::thread writer(run_side, std::cref(write), std::ref(failures[0]));
    run_side(read, failures[1]);
    writer.join();
    return failures;
  }
};

struct ProcessPair {
  explicit ProcessPair(ChannelOptions which) : options(std::move(which)) {}
  ~ProcessPair() { JobMemory::remove(options.job); }
  ProcessPair(const ProcessPair&) = delete;
  ProcessPair& operator=(const ProcessPair&) = delete;

  ChildProcess start(const SideBody& body) const {
    return ChildProcess([&] {
      Channel opened = Channel::open(options.job, options.name);
      body(opened);
    });
  }

  static std::vector<std::string> run(const ChannelOptions& options, const SideBody& write,
                                      const SideBody& read) {
    const ProcessPair pair(options);
    ChildProcess writer = pair.start(write);
    ChildProcess reader = pair.start(read);
    return {writer.join(), reader.join()};
  }

  ChannelOptions options;
  Channel channel = Channel::create(options);
};

ChannelOptions options_of(int slot_count, std::size_t slot_bytes) {
  return {.job = unique_job(), .name = "case", .slot_count = slot_count, .slot_bytes = slot_bytes};
}

/// Returns frame `number` of the stream with this seed, so that both sides know its size and bytes.
std::vector<std::byte> frame_of(std::uint64_t seed, std::uint64_t number, std::size_t bytes_max) {
  std::mt19937_64 random(seed * 1'000'003 + number);
  const std::size_t sizes[] = {0, bytes_max, 1 + random() % 64, random() % (bytes_max + 1)};
  std::vector<std::byte> bytes(sizes[random() % 4]);
  const std::uint64_t first = random();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>((first + i * (first | 1)) >> 7U);
  }
  return bytes;
}

void write_stream(Channel& channel, WaitPolicy policy, std::uint64_t seed, std::uint64_t count) {
  ChannelWriter writer(channel, policy);
  for (std::uint64_t number = 1; number <= count; ++number) {
    const std::vector<std::byte> frame = frame_of(seed, number, channel.slot_bytes());
    std::ranges::copy(frame, writer.loan(frame.size()).begin());
    writer.publish();
  }
  writer.close();
}

/// Reads and checks all frames. Keeps at most slot_count() - 1 frames, checks each again before
/// releasing it, and releases them in random order.
void read_stream(Channel& channel, WaitPolicy policy, std::uint64_t seed, std::uint64_t count) {
  std::mt19937_64 random(seed);
  const auto require_intact = [&](const ChannelFrame& frame) {
    const auto expected = frame_of(seed, frame.number(), channel.slot_bytes());
    if (!std::ranges::equal(frame.bytes(), expected)) {
      throw std::runtime_error(fmt::format("frame {} of {} bytes isn't what was written (seed {})",
                                           frame.number(), frame.bytes().size(), seed));
    }
  };
  ChannelReader reader(channel, policy);
  std::vector<ChannelFrame> frames;
  while (auto frame = reader.receive()) {
    if (frame->number() != reader.count()) throw std::runtime_error("frames out of order");
    require_intact(*frame);
    frames.push_back(std::move(*frame));
    while (!frames.empty() && (frames.size() >= channel.slot_count() || random() % 2 == 0)) {
      std::swap(frames[random() % frames.size()], frames.back());
      require_intact(frames.back());
      frames.pop_back();
    }
  }
  if (reader.count() != count) {
    throw std::runtime_error(fmt::format("{} frames of {} (seed {})", reader.count(), count, seed));
  }
}

template <typename Pair>
class Channels : public ::testing::Test {};

#ifdef WEFT_THREAD_SANITIZER
using Pairs = ::testing::Types<ThreadPair>;
#else
using Pairs = ::testing::Types<ThreadPair, ProcessPair>;
#endif
TYPED_TEST_SUITE(Channels, Pairs);

TYPED_TEST(Channels, DeliverFramesOfEverySizeInOrder) {
  std::uint64_t seed = 0;
  for (const int slot_count : {1, 2, 3, 8}) {
    for (const std::size_t slot_bytes : {64UL, 5000UL}) {
      for (const WaitPolicy policy : {WaitPolicy::for_threads(2, kDeadline), kSleepy}) {
        ++seed;
        SCOPED_TRACE(fmt::format("{} slots of {} bytes, {} spins, seed {}", slot_count, slot_bytes,
                                 policy.spins, seed));
        constexpr std::uint64_t kCount = 200;
        const std::vector<std::string> failures = TypeParam::run(
            options_of(slot_count, slot_bytes),
            [&](Channel& channel) { write_stream(channel, policy, seed, kCount); },
            [&](Channel& channel) { read_stream(channel, policy, seed, kCount); });
        EXPECT_EQ(failures, std::vector<std::string>(2));
      }
    }
  }
}

TYPED_TEST(Channels, TellTheWriterOfAReaderThatLeftWhileItWaited) {
  const std::vector<std::string> failures = TypeParam::run(
      options_of(1, 64),
      [](Channel& channel) {
        ChannelWriter writer(channel, kSleepy);
        for (;;) {
          writer.loan(8);
          writer.publish();
        }
      },
      [](Channel& channel) {
        ChannelReader reader(channel, kSleepy);
        const auto frame = reader.receive();
        while (channel.side(ChannelRole::writer).asleep == 0) sched_yield();
      });
  EXPECT_NE(failures[0].find("left without closing"), std::string::npos) << failures[0];
  EXPECT_EQ(failures[1], "");
}

#ifndef WEFT_THREAD_SANITIZER

/// Returns the message of the peer_lost error that `body` throws.
std::string lost_text(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    if (error.code() == Errc::peer_lost) return error.what();
    throw;
  }
  return "nothing was thrown";
}

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
}

/// Publishes two frames and dies while it writes the third.
void write_and_hang(Channel& channel) {
  ChannelWriter writer(channel, kSleepy);
  for (int i = 0; i < 2; ++i) {
    writer.loan(8);
    writer.publish();
  }
  writer.loan(8)[0] = std::byte{1};
  for (;;) pause();
}

TEST(KilledWriter, IsNamedWithTheFrameThatItFilled) {
  const ProcessPair pair(options_of(3, 64));
  ChildProcess child = pair.start(write_and_hang);
  while (pair.channel.side(ChannelRole::writer).filling != 3) sched_yield();
  child.kill();
  const std::string pid = std::to_string(child.pid());
  EXPECT_EQ(child.join(), "killed by signal 9");

  Channel channel = Channel::open(pair.options.job, pair.options.name);
  ChannelReader reader(channel, kSleepy);
  reader.receive();
  reader.receive();
  expect_words(
      lost_text([&] { reader.receive(); }),
      {"channel 'case' of job " + pair.options.job, "the writer (process " + pid + ") died",
       "while it was filling frame #3", "2 frames were received"});
}

TEST(KilledWriter, IsNamedToAReaderThatSleeps) {
  const ProcessPair pair(options_of(3, 64));
  ChildProcess writer = pair.start(write_and_hang);
  ChildProcess reader = pair.start([](Channel& channel) {
    ChannelReader side(channel, kSleepy);
    while (side.receive()) {
    }
  });
  while (pair.channel.side(ChannelRole::writer).filling != 3 ||
         pair.channel.side(ChannelRole::reader).asleep == 0) {
    sched_yield();
  }
  writer.kill();
  EXPECT_EQ(writer.join(), "killed by signal 9");
  expect_words(reader.join(), {"while it was filling frame #3", "2 frames were received"});
}

TEST(KilledWriter, IsNamedBetweenFramesToo) {
  const ProcessPair pair(options_of(3, 64));
  ChildProcess child = pair.start([](Channel& channel) {
    ChannelWriter writer(channel, kSleepy);
    writer.loan(8);
    writer.publish();
    for (;;) pause();
  });
  Channel channel = Channel::open(pair.options.job, pair.options.name);
  ChannelReader reader(channel, kSleepy);
  reader.receive();
  child.kill();
  EXPECT_EQ(child.join(), "killed by signal 9");
  expect_words(lost_text([&] { reader.receive(); }), {"died before frame #2", "1 frames"});
}

TEST(KilledReader, IsNamedToAWriterThatWaitsForASlot) {
  const ProcessPair pair(options_of(2, 64));
  ChildProcess reader = pair.start([](Channel& channel) {
    ChannelReader side(channel, kSleepy);
    const auto frame = side.receive();
    for (;;) pause();
  });
  const std::string pid = std::to_string(reader.pid());
  ChildProcess writer = pair.start([](Channel& channel) {
    ChannelWriter side(channel, kSleepy);
    for (;;) {
      side.loan(8);
      side.publish();
    }
  });
  while (pair.channel.side(ChannelRole::reader).attached == 0 ||
         pair.channel.side(ChannelRole::writer).asleep == 0) {
    sched_yield();
  }
  reader.kill();
  EXPECT_EQ(reader.join(), "killed by signal 9");
  expect_words(writer.join(),
               {"the reader (process " + pid + ") died", "2 frames were published", "0 released"});
}

#endif

}  // namespace
}  // namespace weft::testing::channels_test
