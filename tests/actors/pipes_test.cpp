/// Tests streams of values between actors.

#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <weft/actor.hpp>

#include "actors/user/pipe_end.hpp"
#include "tests/support/app_process.hpp"
#include "tests/support/expect_error.hpp"
#include "transport/memory/segment.hpp"

namespace weft::pipes_test {
namespace {

using testing::expect_error;
using testing::wait_until;

struct Frame {
  std::int64_t number = 0;
  std::string text{};
  HostTensor pixels{};
};

/// An actor that writes and reads pipes that others give it.
class Streamer {
 public:
  explicit Streamer(ActorContext& ctx) : ctx_(ctx) {}
  void write_numbers(PipeWriter<int> writer, int count) const {
    for (int i = 0; i < count; ++i) writer.write(i);
    writer.close();
  }
  std::int64_t sum(PipeReader<int> reader) const {
    std::int64_t sum = 0;
    for (const int each : reader) sum += each;
    return sum;
  }
  void write_frames(PipeWriter<Frame> writer, int count, bool loans) const {
    for (int i = 0; i < count; ++i) {
      std::vector<float> values(100, static_cast<float>(i));
      if (loans) {
        LoanedTensor pixels = writer.loan({DType::f32, {10, 10}});
        std::ranges::copy(values, pixels.get<float>().begin());
        writer.write({.number = i, .text = "loan", .pixels = std::move(pixels).finish()});
      } else {
        writer.write({.number = i, .text = "copy", .pixels = HostTensor(std::move(values), {100})});
      }
    }
    writer.close();
  }
  /// Writes one number, and keeps its end of the pipe open.
  int keep(PipeWriter<int> writer) {
    writer_ = std::move(writer);
    writer_.write(1);
    return static_cast<int>(::getpid());
  }
  int keep_reader(PipeReader<int> reader) {
    reader_ = std::move(reader);
    return *reader_.read();
  }
  std::string wait_for_value(PipeReader<int> reader) const {
    try {
      (void)reader.read();
    } catch (const Error& error) {
      return error.what();
    }
    return "read";
  }
  int pid() const { return ::getpid(); }
  /// Makes a pipe and returns its reader.
  PipeReader<int> numbers(int count) const {
    Pipe<int> pipe = ctx_.pipe<int>();
    for (int i = 0; i < count; ++i) pipe.writer.write(i);
    pipe.writer.close();
    return pipe.reader;
  }
  using endpoints = Endpoints<&Streamer::write_numbers, &Streamer::sum, &Streamer::write_frames,
                              &Streamer::keep, &Streamer::keep_reader, &Streamer::wait_for_value,
                              &Streamer::pid, &Streamer::numbers>;

 private:
  ActorContext& ctx_;
  PipeWriter<int> writer_;
  PipeReader<int> reader_;
};
const ActorType<Streamer> streamer{"pipes.streamer"};

class Pipes : public ::testing::TestWithParam<int> {
 protected:
  ActorMesh<Streamer> spawn(const SpawnOptions& options = {}) {
    SpawnOptions all = options;
    all.count = 2;
    all.place = {.processes = GetParam()};
    all.own_thread = true;
    return system_.spawn(streamer, all);
  }
  /// Returns the names of the system's pipes.
  std::vector<std::string> names() const {
    return Segment::list(fmt::format("weft-{}-channel-", system_.id()));
  }

  ActorSystem system_{{.name = "pipes"}};
};
INSTANTIATE_TEST_SUITE_P(Places, Pipes, ::testing::Values(0, 2),
                         [](const auto& place) { return fmt::format("Processes{}", place.param); });

TEST_P(Pipes, CarryValuesInTheirOrder) {
  const auto streamers = spawn();
  Pipe<int> pipe = system_.pipe<int>({.credits = 4});
  streamers[0].tell<&Streamer::write_numbers>(pipe.writer, 10'000);
  int next = 0;
  for (const int value : pipe.reader) ASSERT_EQ(value, next++);
  EXPECT_EQ(next, 10'000);
  EXPECT_TRUE(pipe.reader.has_ended());
  EXPECT_TRUE(names().empty());
}

TEST_P(Pipes, ConnectTwoActors) {
  const auto streamers = spawn();
  Pipe<int> pipe = system_.pipe<int>();
  auto sum = streamers[1].call<&Streamer::sum>(pipe.reader);
  streamers[0].tell<&Streamer::write_numbers>(pipe.writer, 1000);
  EXPECT_EQ(sum.get(), 999 * 1000 / 2);
}

TEST_P(Pipes, AreMadeByActorsToo) {
  const auto streamers = spawn();
  PipeReader<int> reader = streamers[0].call<&Streamer::numbers>(50).get();
  int next = 0;
  for (const int value : reader) ASSERT_EQ(value, next++);
  EXPECT_EQ(next, 50);
}

TEST_P(Pipes, CarryTensors) {
  const auto streamers = spawn();
  for (const bool loans : {false, true}) {
    Pipe<Frame> pipe = system_.pipe<Frame>({.credits = 3, .value_bytes = 1024});
    streamers[0].tell<&Streamer::write_frames>(pipe.writer, 100, loans);
    std::int64_t next = 0;
    while (const std::optional<Frame> frame = pipe.reader.read()) {
      ASSERT_EQ(frame->number, next);
      ASSERT_EQ(frame->text, loans ? "loan" : "copy");
      ASSERT_EQ(frame->pixels.shape, loans ? Shape({10, 10}) : Shape({100}));
      for (const float pixel : frame->pixels.get<float>())
        ASSERT_EQ(pixel, static_cast<float>(next));
      ++next;
    }
    EXPECT_EQ(next, 100);
  }
}

TEST_P(Pipes, GiveACreditBackWhenNoTensorOfAValueIsLeft) {
  Pipe<Frame> pipe = system_.pipe<Frame>({.credits = 2, .value_bytes = 1024});
  const Frame frame{.pixels = HostTensor(std::vector<float>{1, 2}, {2})};
  ASSERT_TRUE(pipe.writer.try_write(frame));
  ASSERT_TRUE(pipe.writer.try_write(frame));
  EXPECT_FALSE(pipe.writer.try_write(frame));
  std::optional<Frame> read = pipe.reader.try_read();
  ASSERT_TRUE(read.has_value());
  EXPECT_FALSE(pipe.writer.try_write(frame)) << "the tensor is still there";
  read.reset();
  EXPECT_TRUE(pipe.writer.try_write(frame));
}

TEST_P(Pipes, DontCopyALoanedTensor) {
  Pipe<Frame> pipe = system_.pipe<Frame>({.credits = 1, .value_bytes = 4096});
  LoanedTensor loan = pipe.writer.loan({DType::f32, {4}});
  std::ranges::fill(loan.get<float>(), 5.0F);
  const void* const memory = loan.bytes().data();
  pipe.writer.write({.pixels = std::move(loan).finish()});
  const std::optional<Frame> read = pipe.reader.read();
  EXPECT_EQ(read->pixels.get<float>()[3], 5.0F);
  // Each end has its own mapping of the memory, which has the value at the same place of a page.
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(read->pixels.elements.data()) % 4096,
            reinterpret_cast<std::uintptr_t>(memory) % 4096);
}

TEST_P(Pipes, TellTheReaderThatItsWriterIsGone) {
  if (GetParam() == 0) GTEST_SKIP() << "actors of this process can't be killed";
  const auto streamers = spawn({.supervision = {.max_restarts = 5}});
  Pipe<int> pipe = system_.pipe<int>();
  const int pid = streamers[0].call<&Streamer::keep>(pipe.writer).get();
  EXPECT_EQ(pipe.reader.read(), 1);
  ::kill(pid, SIGKILL);
  expect_error(Errc::peer_lost, {"the writer (process", "died before frame #2"},
               [&] { (void)pipe.reader.read(); });
}

TEST_P(Pipes, TellTheWriterThatItsReaderIsGone) {
  if (GetParam() == 0) GTEST_SKIP() << "actors of this process can't be killed";
  const auto streamers = spawn({.supervision = {.max_restarts = 5}});
  const int pid = streamers[0].call<&Streamer::pid>().get();
  Pipe<int> pipe = system_.pipe<int>({.credits = 2});
  auto first = streamers[0].call<&Streamer::keep_reader>(pipe.reader);
  pipe.writer.write(6);
  EXPECT_EQ(first.get(), 6);
  ::kill(pid, SIGKILL);
  expect_error(Errc::peer_lost, {"the reader (process", "died"}, [&] {
    for (;;) pipe.writer.write(1);
  });
}

TEST_P(Pipes, EndIfAnEndIsDestroyed) {
  Pipe<int> pipe = system_.pipe<int>();
  pipe.writer.write(3);
  pipe.writer = {};
  EXPECT_EQ(pipe.reader.read(), 3);
  expect_error(Errc::peer_lost, {"left without closing"}, [&] { (void)pipe.reader.read(); });
  Pipe<int> unused = system_.pipe<int>();
  unused.reader = {};
  expect_error(Errc::peer_lost, {"its other end was destroyed"}, [&] { unused.writer.write(1); });
  unused.writer = {};
  EXPECT_TRUE(names().empty());
}

TEST_P(Pipes, ThatNobodyGetsLeaveNoMemory) {
  const auto streamers = spawn({.name = "gone"});
  system_.stop("gone");
  for (int i = 0; i < 3; ++i) {
    Pipe<int> pipe = system_.pipe<int>();
    EXPECT_FALSE(streamers[0].call<&Streamer::keep>(pipe.writer).outcome().ok());
  }
  EXPECT_TRUE(names().empty());
}

TEST_P(Pipes, AreToldOfADeathThoughTheyNeverWait) {
  if (GetParam() == 0) GTEST_SKIP() << "actors of this process can't be killed";
  const auto streamers = spawn({.supervision = {.max_restarts = 5}});
  Pipe<int> pipe = system_.pipe<int>();
  ::kill(streamers[0].call<&Streamer::keep>(pipe.writer).get(), SIGKILL);
  expect_error(Errc::peer_lost, {"died before frame #2"}, [&] {
    for (;;) (void)pipe.reader.try_read();
  });
}

TEST_P(Pipes, EndWaitsOfActorsThatAreToStop) {
  const auto streamers = spawn({.name = "stopped"});
  Pipe<int> pipe = system_.pipe<int>();
  pipe.writer.write(1);
  EXPECT_EQ(streamers[0].call<&Streamer::keep_reader>(pipe.reader).get(), 1);
  Pipe<int> other = system_.pipe<int>();
  auto waiting = streamers[1].call<&Streamer::wait_for_value>(other.reader);
  other.writer.write(1);
  EXPECT_EQ(waiting.get(), "read");
  Pipe<int> last = system_.pipe<int>();
  auto stopped = streamers[1].call<&Streamer::wait_for_value>(last.reader);
  (void)last.writer.try_write(1);
  EXPECT_EQ(stopped.get(), "read");
  Pipe<int> never = system_.pipe<int>();
  streamers[1].tell<&Streamer::sum>(never.reader);
  never.writer.write(1);
  wait_until([&] { return names().empty(); });  // then the actor has opened the pipe and reads
  system_.stop("stopped");
}

TEST_P(Pipes, SayThatTheOtherEndWasntUsed) {
  Pipe<int> pipe = system_.pipe<int>({.join_timeout_s = 0.02});
  expect_error(Errc::timeout, {"its writer wasn't used within 0.02 s"},
               [&] { (void)pipe.reader.read(); });
}

TEST_P(Pipes, RefuseWhatCantBe) {
  const auto streamers = spawn();
  Pipe<int> pipe = system_.pipe<int>();
  pipe.writer.write(1);
  expect_error(Errc::invalid_argument, {"this end of a pipe is in use"},
               [&] { streamers[0].tell<&Streamer::write_numbers>(pipe.writer, 1); });
  auto sum = streamers[0].call<&Streamer::sum>(pipe.reader);
  expect_error(Errc::invalid_argument, {"only the actor that took it may use it"},
               [&] { (void)pipe.reader.read(); });
  expect_error(Errc::invalid_argument, {"this end of a pipe was sent already"},
               [&] { streamers[1].call<&Streamer::sum>(pipe.reader).get(); });
  pipe.writer.close();
  EXPECT_EQ(sum.get(), 1);
  expect_error(Errc::invalid_argument, {"after close()"}, [&] { pipe.writer.write(1); });
  expect_error(Errc::invalid_argument, {"this is no end of a pipe"},
               [] { PipeWriter<int>().write(1); });
  expect_error(Errc::invalid_argument, {"credits = 0"},
               [&] { (void)system_.pipe<int>({.credits = 0}); });
  Pipe<Frame> small = system_.pipe<Frame>({.value_bytes = 64});
  expect_error(Errc::invalid_argument, {"expected at most PipeOptions::value_bytes = 64"},
               [&] { small.writer.write({.text = std::string(65, 'x')}); });
  small.writer.write({.number = 8});
  EXPECT_EQ(small.reader.read()->number, 8);
}

TEST_P(Pipes, ArentReadByActorsThatShareTheirThread) {
  SpawnOptions options{.name = "shared", .place = {.processes = GetParam() / 2}};
  const auto shared = system_.spawn(streamer, options);
  Pipe<int> pipe = system_.pipe<int>();
  EXPECT_NE(shared[0]
                .call<&Streamer::wait_for_value>(pipe.reader)
                .get()
                .find("shared[0] may not wait, because other actors need its thread"),
            std::string::npos);
}

TEST(PipeFrames, ThatLieAreRefused) {
  std::vector<std::byte> bytes(256);
  const auto read = [&](PipeFrameHead head) {
    std::memcpy(bytes.data(), &head, sizeof head);
    return read_pipe_frame(bytes, nullptr);
  };
  EXPECT_EQ(read({.body_offset = 64, .body_bytes = 192}).bytes.size(), 192U);
  expect_error(Errc::corrupt, {"193 bytes at 64, in a frame of 256 bytes"},
               [&] { read({.body_offset = 64, .body_bytes = 193}); });
  expect_error(Errc::corrupt, {"in a frame"},
               [&] { read({.body_offset = ~0ULL, .body_bytes = 1}); });
  expect_error(Errc::corrupt, {"65 tensors"}, [&] { read({.payload_count = 65}); });
  const PipePayload outside{.offset = 192, .bytes = 65};
  std::memcpy(bytes.data() + 64, &outside, sizeof outside);
  expect_error(Errc::corrupt, {"65 bytes at 192"},
               [&] { read({.body_offset = 64, .payload_count = 1}); });
  const PipePayload crooked{.offset = 8, .bytes = 4};
  std::memcpy(bytes.data() + 64, &crooked, sizeof crooked);
  expect_error(Errc::corrupt, {"not at a multiple of 64"},
               [&] { read({.body_offset = 64, .payload_count = 1}); });
}

}  // namespace
}  // namespace weft::pipes_test
