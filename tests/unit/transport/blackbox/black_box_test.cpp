#include "transport/blackbox/black_box.hpp"

#include <gtest/gtest.h>

#include <sched.h>
#include <stdlib.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/box_parts.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/small_shm.hpp"
#include "transport/blackbox/black_box_writer.hpp"
#include "transport/job/job_memory.hpp"

namespace weft::black_box_test {
namespace {

using box_format::BoxHeaderV2;
using testing::ChildProcess;
using testing::expect_error;
using testing::unique_job;

constexpr RingId kChip{RingKind::chip, 0};
constexpr RingId kLoop{RingKind::loop, 0};
constexpr RingId kLink{RingKind::link, 0};
constexpr RingId kThreads{RingKind::shared, 0};

/// A fixture with the id of a job. The job's black box is removed at the end of a test.
class BlackBoxTest : public ::testing::Test {
 protected:
  ~BlackBoxTest() override { Segment::remove(BlackBoxWriter::segment_name(job)); }

  BlackBoxOptions options() const { return {.job = job, .num_workers = 1, .num_chips = 1}; }
  Segment bytes() const { return Segment::open(BlackBoxWriter::segment_name(job), false, 1); }

  std::string job = unique_job();
};

TEST_F(BlackBoxTest, ShowsWhatAnotherProcessWrote) {
  BlackBoxWriter made = BlackBoxWriter::create(options());
  ChildProcess child([this] {
    BlackBoxWriter box = BlackBoxWriter::open(job);
    const EventWriter chip = box.chip(0, 0);
    chip.step(0x2'0b23);
    chip.put(EventKind::enter, {.number = 5768,
                                .value = 4096,
                                .peer = 255,
                                .text = chip.intern("all_reduce 'w.grad'"),
                                .flags = kEventEnds});
    chip.position(chip.intern("tanh at digits.cpp:36"), 12);
  });
  ASSERT_EQ(child.join(), "");
  const BlackBox box = BlackBox::open(job);
  EXPECT_EQ(box.job(), job);
  EXPECT_NE(box.boot_id(), "");
  const std::vector<Event> events = box.events(kChip);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, EventKind::enter);
  EXPECT_EQ(events[0].number, 5768U);
  EXPECT_EQ(events[0].value, 4096U);
  EXPECT_EQ(events[0].peer, 255);
  EXPECT_EQ(events[0].text, "all_reduce 'w.grad'");
  EXPECT_EQ(events[0].flags, kEventEnds);
  EXPECT_EQ(events[0].step, 0x0b23);
  EXPECT_EQ(box.step(kChip), 0x2'0b23U);
  EXPECT_EQ(box.position(0).text, "tanh at digits.cpp:36");
  EXPECT_EQ(box.position(0).index, 12U);
}

TEST_F(BlackBoxTest, HasTheRingsOfThoseWhoHaveCome) {
  BlackBoxWriter writer = BlackBoxWriter::create({.job = job, .num_workers = 2, .num_chips = 4});
  const BlackBox box = BlackBox::open(job);
  EXPECT_TRUE(box.rings().empty());
  expect_error(Errc::not_found, {"chip", "3"}, [&] { box.events({RingKind::chip, 3}); });
  writer.link(-1);
  writer.chip(3, 1);
  const std::vector<RingId> expected{
      {RingKind::loop, -1}, {RingKind::link, -1},  {RingKind::shared, -1}, {RingKind::loop, 1},
      {RingKind::link, 1},  {RingKind::shared, 1}, {RingKind::chip, 3}};
  EXPECT_EQ(box.rings(), expected);
  EXPECT_TRUE(box.events({RingKind::chip, 3}).empty());
  expect_error(Errc::not_found, {"loop", "0"}, [&] { box.events(kLoop); });
  expect_error(Errc::not_found, {"chip", "-1"}, [&] { box.events({RingKind::chip, -1}); });
  expect_error(Errc::invalid_argument, {"chip = 4, but there are 4 chips"},
               [&] { writer.chip(4, 1); });
  expect_error(Errc::invalid_argument, {"worker = 2, but there are 2 workers"},
               [&] { writer.loop(2); });
}

/// Compares a ring with a queue that drops its oldest events.
TEST_F(BlackBoxTest, KeepsTheLastEventsOfARing) {
  constexpr std::size_t kCapacity = box_format::kLinkRecords;
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  BlackBoxWriter writer = BlackBoxWriter::create(options());
  const EventWriter link = writer.link(0);
  const BlackBox box = BlackBox::open(job);
  std::deque<std::uint64_t> expected;
  std::uint64_t written = 0;
  for (int round = 0; round < 20; ++round) {
    for (auto count = random() % 300; count > 0; --count) {
      const std::uint64_t value = random();
      ++written;
      // With the real clock, two events might have the same tick.
      link.put_at(1000 + written, EventKind::message_in, {.number = written, .value = value});
      expected.push_back(value);
      if (expected.size() > kCapacity) expected.pop_front();
    }
    const std::vector<Event> events = box.events(kLink);
    ASSERT_EQ(events.size(), expected.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
      ASSERT_EQ(events[i].value, expected[i]);
      ASSERT_EQ(events[i].number, written - events.size() + 1 + i);
    }
    EXPECT_EQ(box.written(kLink), written);
  }
}

TEST_F(BlackBoxTest, NeverShowsHalfAnEvent) {
  BlackBoxWriter writer = BlackBoxWriter::create(options());
  const EventWriter chip = writer.chip(0, 0);
  const BlackBox box = BlackBox::open(job);
  std::atomic<bool> done{false};
  std::thread thread([&] {
    for (std::uint64_t i = 1; i <= 100'000; ++i) {
      chip.put_at(i + 1, EventKind::enter,
                  {.number = i, .value = ~i, .peer = static_cast<int>(i % 100)});
    }
    done = true;
  });
  while (!done) {
    for (const Event& event : box.events(kChip)) {
      ASSERT_EQ(event.value, ~event.number);
      ASSERT_EQ(event.peer, static_cast<int>(event.number % 100));
    }
  }
  thread.join();
  EXPECT_EQ(box.events(kChip).size(), box_format::kChipRecords);
}

TEST_F(BlackBoxTest, KeepsTheEventsOfThreadsThatShareARing) {
  BlackBoxWriter writer = BlackBoxWriter::create(options());
  const BlackBox box = BlackBox::open(job);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t, shared = writer.shared(0)] {
      for (std::uint64_t i = 0; i < 250; ++i) {
        shared.put(EventKind::log, {.number = i, .value = i * 4 + static_cast<unsigned>(t)});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::uint64_t> values;
  for (const Event& event : box.events(kThreads)) {
    EXPECT_EQ(event.number, event.value / 4);
    values.insert(event.value);
  }
  EXPECT_EQ(values.size(), 1000U);
}

TEST_F(BlackBoxTest, NeverMixesEventsOfThreadsThatShareARing) {
  BlackBoxWriter writer = BlackBoxWriter::create(options());
  const BlackBox box = BlackBox::open(job);
  std::atomic<int> running{3};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&running, shared = writer.shared(0)] {
      for (std::uint64_t i = 0; i < 20'000; ++i) {
        shared.put(EventKind::log, {.number = i, .value = ~i});
      }
      --running;
    });
  }
  while (running > 0) {
    for (const Event& event : box.events(kThreads)) ASSERT_EQ(event.value, ~event.number);
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(BlackBoxTest, LosesAtMostOneEventOfAKilledWriter) {
  BlackBoxWriter made = BlackBoxWriter::create(options());
  made.chip(0, 0);  // makes chip 0's ring, which is read below
  const BlackBox box = BlackBox::open(job);
  for (int i = 0; i < 10; ++i) {
    const std::uint64_t before = box.written(kChip);
    ChildProcess child([this] {
      BlackBoxWriter opened = BlackBoxWriter::open(job);
      const EventWriter chip = opened.chip(0, 0);
      for (std::uint64_t n = 0;; ++n) chip.put(EventKind::enter, {.number = n, .value = ~n});
    });
    while (box.written(kChip) < before + 2 * box_format::kChipRecords) sched_yield();
    child.kill();
    child.join();
    const std::vector<Event> events = box.events(kChip);
    ASSERT_GE(events.size(), box_format::kChipRecords - 1);
    for (std::size_t e = 0; e < events.size(); ++e) {
      ASSERT_EQ(events[e].value, ~events[e].number);
      ASSERT_EQ(events[e].number, events[0].number + e);
    }
  }
}

TEST_F(BlackBoxTest, GoesOnWhereTheProcessBeforeHasEnded) {
  std::uint32_t id = 0;
  {
    BlackBoxWriter box = BlackBoxWriter::create(options());
    id = box.loop(0).intern("known");
    box.loop(0).put(EventKind::report, {.number = 1});
  }
  BlackBoxWriter again = BlackBoxWriter::open(job);
  EXPECT_EQ(again.loop(0).intern("known"), id);
  again.loop(0).put(EventKind::report, {.number = 2, .text = again.loop(0).intern("new")});
  const std::vector<Event> events = BlackBox::open(job).events(kLoop);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].number, 2U);
}

TEST_F(BlackBoxTest, HoldsTheLargestJob) {
  BlackBoxWriter writer =
      BlackBoxWriter::create({.job = job, .num_workers = 1024, .num_chips = 4096});
  for (const int chip : {0, 17, 4095}) {
    const EventWriter events = writer.chip(chip, chip % 1024);
    events.put(EventKind::step, {.number = 1, .text = events.intern(fmt::format("chip {}", chip))});
  }
  const BlackBox box = BlackBox::open(job);
  for (const int chip : {0, 17, 4095}) {
    const std::vector<Event> events = box.events({RingKind::chip, chip});
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].text, fmt::format("chip {}", chip));
  }
  EXPECT_EQ(box.rings().size(), 3U * 3 + 3);
  expect_error(Errc::invalid_argument, {"4097", "4096"}, [] {
    BlackBoxWriter::anonymous({.job = "j", .num_workers = 1, .num_chips = 4097});
  });
}

TEST_F(BlackBoxTest, TellsTheTimeWithoutTheProcessorsCounter) {
  BlackBoxOptions without = options();
  without.ticks = TickSource::monotonic;
  BlackBoxWriter writer = BlackBoxWriter::create(without);
  const std::int64_t before = clock_ns(CLOCK_MONOTONIC);
  writer.chip(0, 0).put(EventKind::step);
  const std::int64_t after = clock_ns(CLOCK_MONOTONIC);
  const BlackBox box = BlackBox::open(job);
  EXPECT_EQ(box.ticks(), TickSource::monotonic);
  const std::vector<Event> events = box.events(kChip);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_GE(events[0].at_ns, before);
  EXPECT_LE(events[0].at_ns, after);
}

TEST_F(BlackBoxTest, WritesWhatItsLevelSays) {
  BlackBoxOptions off = options();
  off.level = TraceLevel::off;
  BlackBoxWriter writer = BlackBoxWriter::create(off);
  const EventWriter chip = writer.chip(0, 0);
  const BlackBox box = BlackBox::open(job);
  chip.put(EventKind::step);
  EXPECT_TRUE(box.events(kChip).empty());
  writer.set_level(TraceLevel::full);
  EXPECT_EQ(chip.level(), TraceLevel::full);
  chip.put(EventKind::step);
  EXPECT_EQ(box.events(kChip).size(), 1U);
}

TEST_F(BlackBoxTest, SumsUpWhoKeepsAChipWaiting) {
  BlackBoxOptions in_ns = options();
  in_ns.num_chips = 4;
  in_ns.ticks = TickSource::monotonic;
  BlackBoxWriter writer = BlackBoxWriter::create(in_ns);
  const EventWriter chip = writer.chip(0, 0);
  const ArrivalLedger ledger = writer.ledger(0);
  const std::uint32_t a = ledger.entry_of(chip.intern("all_reduce 'a'"));
  const std::uint32_t b = ledger.entry_of(chip.intern("all_reduce 'b'"));
  EXPECT_EQ(writer.ledger(0).entry_of(chip.intern("all_reduce 'a'")), a);
  ledger.add(a, {.last_chip = -1, .waited = 0});
  ledger.add(a, {.last_chip = 3, .waited = 1000});
  ledger.add(a, {.last_chip = 3, .waited = 600});
  ledger.add(b, {.last_chip = 1, .waited = 1'000'000'000'000});
  const BlackBox box = BlackBox::open(job);
  const std::vector<LedgerEntry> entries = box.ledger(0);
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].text, "all_reduce 'a'");
  EXPECT_EQ(entries[0].count, 3U);
  EXPECT_EQ(entries[0].times_last, 1U);
  EXPECT_EQ(entries[0].waited_ns, 1600U);
  EXPECT_EQ(entries[0].waits[0].count, 1U);
  EXPECT_EQ(entries[0].waits[2].from_ns, 512U);
  EXPECT_EQ(entries[0].waits[2].count, 2U);
  EXPECT_EQ(entries[1].waits.back().count, 1U);
  EXPECT_EQ(box.waited_for_ns(0), (std::vector<std::uint64_t>{0, 1'000'000'000'000, 0, 1600}));
}

TEST_F(BlackBoxTest, CountsCallsBeyondTheLedgerTogether) {
  BlackBoxWriter writer = BlackBoxWriter::create(options());
  const EventWriter chip = writer.chip(0, 0);
  const ArrivalLedger ledger = writer.ledger(0);
  for (std::uint32_t i = 0; i < 300; ++i) {
    ledger.add(ledger.entry_of(chip.intern(fmt::format("call {}", i))), {});
  }
  const std::vector<LedgerEntry> entries = BlackBox::open(job).ledger(0);
  ASSERT_EQ(entries.size(), box_format::kLedgerEntries);
  EXPECT_EQ(entries.back().text, "");
  EXPECT_EQ(entries.back().count, 300 - box_format::kLedgerEntries + 1);
}

TEST_F(BlackBoxTest, CanBeWrittenNowhere) {
  const EventWriter nowhere;
  nowhere.put(EventKind::step);
  nowhere.step(1);
  nowhere.position(1, 1);
  EXPECT_EQ(nowhere.intern("text"), 0U);
  EXPECT_FALSE(nowhere.is_on());
}

TEST_F(BlackBoxTest, KeepsATextOnce) {
  BlackBoxWriter writer = BlackBoxWriter::create(options());
  const EventWriter loop = writer.loop(0);
  const std::uint32_t id = loop.intern("add at a.cpp:1");
  EXPECT_NE(id, 0U);
  EXPECT_EQ(writer.chip(0, 0).intern("add at a.cpp:1"), id);
  EXPECT_NE(loop.intern("add at a.cpp:2"), id);
  EXPECT_EQ(loop.intern(""), 0U);
}

TEST_F(BlackBoxTest, KeepsRoomForOtherTextsThanRecords) {
  BlackBoxWriter writer = BlackBoxWriter::create(options());
  const EventWriter loop = writer.loop(0);
  const auto fill = [&](bool is_record) {
    int count = 0;
    const char* const kind = is_record ? "record" : "step";
    while (loop.intern(fmt::format("{} {:0200}", kind, count), is_record) != 0) ++count;
    return count;
  };
  const int records = fill(true);
  const int steps = fill(false);
  EXPECT_GT(records, 900);
  EXPECT_NEAR(records, 3 * steps, 20);
  EXPECT_NE(loop.intern(fmt::format("step {:0200}", 0)), 0U);  // a text that was interned before
}

TEST_F(BlackBoxTest, CutsATextBetweenCharacters) {
  BlackBoxWriter writer = BlackBoxWriter::create(options());
  const EventWriter loop = writer.loop(0);
  loop.put(EventKind::error, {.text = loop.intern(std::string(254, 'a') + "é")});
  loop.put(EventKind::error, {.text = loop.intern("a\xff")});
  const BlackBox box = BlackBox::open(job);
  const std::vector<Event> events = box.events(kLoop);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].text, std::string(254, 'a'));
  EXPECT_EQ(events[1].text, "a\\xff");
}

TEST_F(BlackBoxTest, IsRemovedWithItsJob) {
  BlackBoxWriter::create(options());
  EXPECT_EQ(JobMemory::remove(job), 1);
  expect_error(Errc::not_found, {job}, [&] { BlackBox::open(job); });
}

TEST(TraceLevel, IsThatOfTheEnvironment) {
  ::unsetenv("WEFT_TRACE");
  EXPECT_EQ(trace_level_of_environment(), TraceLevel::sampled);
  ::setenv("WEFT_TRACE", "full", 1);
  EXPECT_EQ(trace_level_of_environment(), TraceLevel::full);
  ::setenv("WEFT_TRACE", "off", 1);
  EXPECT_EQ(trace_level_of_environment(), TraceLevel::off);
  ::setenv("WEFT_TRACE", "on", 1);
  expect_error(Errc::invalid_argument, {"WEFT_TRACE", "\"on\"", "full", "off"},
               [] { trace_level_of_environment(); });
  ::unsetenv("WEFT_TRACE");
}

TEST(BlackBox, ReservesItsMemoryBeforeItIsWritten) {
  testing::in_own_shm("size=500k", [] {
    const std::string job = unique_job();
    BlackBoxWriter writer = BlackBoxWriter::create({.job = job, .num_workers = 1, .num_chips = 4});
    writer.loop(0);
    expect_error(Errc::no_space, {"-box", "/dev/shm", "free"}, [&] { writer.chip(0, 0); });
    EXPECT_EQ(BlackBox::open(job).rings().size(), 3U);
    JobMemory::remove(job);
  });
}

TEST_F(BlackBoxTest, RefusesSizesThatDontFitItsMapping) {
  BlackBoxWriter::create(options());
  const Segment segment = bytes();
  auto& header = *reinterpret_cast<BoxHeaderV2*>(segment.data());
  const BoxHeaderV2 good = header;
  const auto expect_refusal = [&](Errc code, auto&& damage) {
    header = good;
    damage();
    expect_error(code, {job}, [&] { BlackBox::open(job); });
    expect_error(code, {job}, [&] { BlackBoxWriter::open(job); });
  };
  expect_refusal(Errc::corrupt, [&] { header.magic ^= 1U; });
  expect_refusal(Errc::not_found, [&] { header.magic = 0; });
  expect_refusal(Errc::version, [&] { header.version = 1; });
  expect_refusal(Errc::corrupt, [&] { header.num_chips = 2; });
  expect_refusal(Errc::corrupt, [&] { header.num_chips = -1; });
  expect_refusal(Errc::corrupt, [&] { header.num_workers = 0x7fffffff; });
  expect_refusal(Errc::corrupt, [&] { header.clock = 2; });
  expect_refusal(Errc::corrupt, [&] { header.record_bytes = 16; });
  expect_refusal(Errc::corrupt, [&] { header.header_bytes = 512; });
  expect_error(Errc::corrupt, {"3 bytes"}, [] { BlackBox::from_bytes(std::vector<std::byte>(3)); });
}

TEST_F(BlackBoxTest, HasNoTextForAnIdThatIsNone) {
  BlackBoxWriter writer = BlackBoxWriter::create(options());
  const EventWriter loop = writer.loop(0);
  loop.intern("a text");
  for (const std::uint32_t id : {1U, 7U, 16U, 4096U, 2 * box_format::kTextBytes, 0xffffffffU}) {
    loop.put_at(10 + id, EventKind::error, {.text = id});
  }
  const BlackBox box = BlackBox::open(job);
  for (const Event& event : box.events(kLoop)) EXPECT_EQ(event.text, "");
}

/// Returns a box of no worker and one chip. Its clocks, host and job are always the same.
std::vector<std::byte> fixed_box(const std::string& job) {
  BlackBoxWriter writer = BlackBoxWriter::create(
      {.job = job, .num_workers = 0, .num_chips = 1, .ticks = TickSource::processor});
  const EventWriter link = writer.link(-1);
  link.put_at(2000, EventKind::message_in, {.number = 1, .peer = 0, .text = link.intern("join")});
  const EventWriter chip = writer.chip(0, -1);
  const std::uint32_t text = chip.intern("all_reduce 'fc1.weight.grad'");
  chip.step(204);
  chip.put_at(3000, EventKind::step, {.number = 204});
  chip.put_at(4000, EventKind::enter, {.number = 812, .value = 4096, .text = text});
  chip.put_at(5000, EventKind::leave, {.number = 812, .value = 500, .peer = 3, .text = text});
  chip.position(text, 7);
  writer.shared(-1).put_at(6000, EventKind::log, {.value = 3});

  const Segment segment = Segment::open(BlackBoxWriter::segment_name(job), false, 1);
  auto& header = *reinterpret_cast<BoxHeaderV2*>(segment.data());
  std::memset(header.host, 0, sizeof header.host);
  std::memset(header.boot_id, 0, sizeof header.boot_id);
  std::memcpy(header.host, "host", 4);
  std::memcpy(header.boot_id, "00000000-0000-4000-8000-000000000000", 36);
  std::memcpy(header.job, "0123456789abcdef0123456789abcdef", 32);
  header.pair_count = 2;
  header.pairs[0] = {1000, 1'000'000, 1'700'000'000'000'000'000};
  header.pairs[1] = {11'000, 1'005'000, 1'700'000'000'000'005'000};
  return testing::gather_box({segment.data(), segment.capacity()});
}

TEST_F(BlackBoxTest, HasTheBytesOfItsVersion) {
  testing::expect_golden("box-v2.bin", fixed_box(job));
}

TEST_F(BlackBoxTest, ReadsTheBytesOfItsVersion) {
  const std::string golden = testing::read_golden("box-v2.bin");
  const BlackBox box = BlackBox::from_bytes(testing::scatter_box(std::as_bytes(std::span(golden))));
  EXPECT_EQ(box.job(), "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(box.host(), "host");
  const std::vector<Event> events = box.events(kChip);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].at_ns, 1'001'000);
  EXPECT_EQ(events[1].text, "all_reduce 'fc1.weight.grad'");
  EXPECT_EQ(events[2].value, 250U);
  EXPECT_EQ(events[2].peer, 3);
  EXPECT_EQ(events[2].step, 204);
  EXPECT_EQ(box.scale().realtime_ns(events[0].at_ns), 1'700'000'000'000'001'000);
  EXPECT_EQ(box.events({RingKind::link, -1}).at(0).text, "join");
  EXPECT_EQ(box.events({RingKind::shared, -1}).at(0).value, 3U);
  EXPECT_EQ(box.position(0).index, 7U);
}

TEST_F(BlackBoxTest, IsReadFromAFile) {
  BlackBoxWriter writer = BlackBoxWriter::create(options());
  writer.chip(0, 0).put(EventKind::step, {.number = 9});
  const Segment segment = bytes();
  const std::string path = ::testing::TempDir() + job + "-box.bin";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(segment.data()),
             static_cast<std::streamsize>(segment.capacity()));
  EXPECT_EQ(BlackBox::open_file(path).events(kChip).at(0).number, 9U);
  std::ofstream(path, std::ios::binary) << "weft";
  expect_error(Errc::corrupt, {path}, [&] { BlackBox::open_file(path); });
  std::filesystem::remove(path);
  expect_error(Errc::not_found, {path}, [&] { BlackBox::open_file(path); });
}

}  // namespace
}  // namespace weft::black_box_test
