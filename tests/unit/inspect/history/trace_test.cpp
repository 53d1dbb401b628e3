#include "inspect/history/trace.hpp"

#include <gtest/gtest.h>

#include <random>

#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "tests/property/seeds.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/trace_grammar.hpp"
#include "tests/unit/inspect/history/made_events.hpp"

namespace weft::trace_test {
namespace {

using Json = nlohmann::json;
using testing::MadeEvents;
using testing::MadeJob;
using testing::step_of_two_chips;
using testing::TraceGrammar;

struct Written {
  std::string text{};
  TraceCounts counts{};
  Json json() const { return Json::parse(text); }
};

Written trace_of(const Snapshot& job, const TraceOptions& options = {}) {
  Written written;
  written.counts =
      write_trace(job, options, [&](std::string_view piece) { written.text += piece; });
  return written;
}

std::vector<Json> events_of(const Json& document, const std::string& phase) {
  std::vector<Json> found;
  for (const Json& event : document.at("traceEvents")) {
    if (event.at("ph") == phase) found.push_back(event);
  }
  return found;
}

TEST(Trace, IsGolden) {
  const Written written = trace_of(step_of_two_chips());
  testing::expect_golden("trace/step.json", written.text);
  EXPECT_EQ(TraceGrammar::fault_of(written.json()), "");
  EXPECT_EQ(written.counts.flows, 3U);
  EXPECT_EQ(written.counts.dropped_flows, 0U);
}

TEST(Trace, LeadsFromTheLastComerToWhoWaited) {
  const Json json = trace_of(step_of_two_chips()).json();
  int arrivals = 0;
  for (const Json& event : events_of(json, "s")) {
    if (event.at("cat") != "arrival") continue;
    ++arrivals;
    EXPECT_EQ(event.at("tid"), 11);
  }
  EXPECT_EQ(arrivals, 1);
}

TEST(Trace, DropsFlowsWithoutTheirOtherEnd) {
  Snapshot job = step_of_two_chips();
  for (EventRing& ring : job.rings) {
    if (ring.chip == 1) ring.events.clear();
    if (ring.kind == RingKind::link && ring.worker == 0) ring.events.clear();
  }
  const Written written = trace_of(job);
  EXPECT_EQ(TraceGrammar::fault_of(written.json()), "");
  EXPECT_EQ(written.counts.flows, 1U);
  EXPECT_EQ(written.counts.dropped_flows, 2U);
  EXPECT_EQ(written.json().at("otherData").at("dropped_flows"), 2);
}

/// A chip announces a collective before it records the call, so another chip's record may be first.
TEST(Trace, BeginsACollectiveBeforeAnotherHasSeenIt) {
  MadeJob made(2, 1);
  Snapshot job = std::move(made.snapshot);
  MadeEvents events(job);
  events.chip(1, {.kind = EventKind::run, .number = 1});
  events.chip(0, {.kind = EventKind::enter, .text = "a", .number = 5});
  events.chip(0, {.kind = EventKind::leave, .peer = 1, .text = "a", .number = 5, .value = 1});
  events.chip(1, {.kind = EventKind::enter, .text = "a", .number = 5});
  events.chip(1, {.kind = EventKind::leave, .text = "a", .number = 5});
  const Written written = trace_of(job);
  EXPECT_EQ(TraceGrammar::fault_of(written.json()), "");
  EXPECT_EQ(written.counts.flows, 1U);
  for (const Json& slice : events_of(written.json(), "X")) {
    if (slice.at("tid") != 11 || slice.at("name") != "a") continue;
    EXPECT_LT(slice.at("ts"), 2.0);
  }
}

/// A worker's new process counts its messages from the beginning.
TEST(Trace, TellsMessagesOfTwoLivesApart) {
  MadeJob made(1, 1);
  Snapshot job = std::move(made.snapshot);
  MadeEvents events(job);
  for (int life = 0; life < 2; ++life) {
    events.of(RingKind::shared, 0, {.kind = EventKind::message_out, .text = "lease", .number = 1});
    events.of(RingKind::link, -1,
              {.kind = EventKind::message_in, .peer = 0, .text = "lease", .number = 1});
  }
  const Written written = trace_of(job);
  EXPECT_EQ(TraceGrammar::fault_of(written.json()), "");
  EXPECT_EQ(written.counts.flows, 2U);
  EXPECT_EQ(written.counts.dropped_flows, 0U);
}

TEST(Trace, ShowsTheTimeThatIsAskedFor) {
  const Snapshot job = step_of_two_chips();
  const Written last = trace_of(job, {.last_s = 1e-6});
  EXPECT_EQ(TraceGrammar::fault_of(last.json()), "");
  EXPECT_LT(last.counts.slices + last.counts.marks, 8U);
  EXPECT_EQ(trace_of(job, {.last_s = 1e30}).text, trace_of(job).text);
  const Written step = trace_of(job, {.steps = StepRange{16, 16}});
  EXPECT_EQ(TraceGrammar::fault_of(step.json()), "");
  EXPECT_LT(step.counts.slices, trace_of(job).counts.slices);
  EXPECT_THROW(trace_of(job, {.steps = StepRange{17, 20}}), Error);
  EXPECT_THROW(trace_of(MadeJob(1, 1).snapshot), Error);
}

TEST(Trace, KeepsForeignTextInsideItsString) {
  MadeJob made(1, 1);
  Snapshot job = std::move(made.snapshot);
  job.header.name = "a\"}\x9b";
  MadeEvents events(job);
  events.of(RingKind::shared, 0, {.kind = EventKind::log, .text = "\"],\n\x1b\xff"});
  events.of(RingKind::loop, 0, {.kind = EventKind::load, .text = "\\\"\\"});
  EXPECT_EQ(TraceGrammar::fault_of(trace_of(job).json()), "");
}

/// Adds the events of some runs of a job's chips, and of its workers' messages, in the order in
/// which the threads would write them.
void add_steps(MadeEvents& events, int chips, std::uint64_t count, std::mt19937_64& random) {
  std::uint64_t collective = 0;
  for (std::uint64_t step = 0; step < count; ++step) {
    for (int chip = 0; chip < chips; ++chip) {
      events.chip(chip, {.kind = EventKind::step, .number = step});
      events.chip(chip, {.kind = EventKind::run, .number = step});
    }
    for (std::uint64_t index = 0; index < 3; ++index) {
      ++collective;
      const int last = static_cast<int>(random() % static_cast<std::uint64_t>(chips));
      const auto enter = [&](int chip) {
        events.chip(chip, {.kind = EventKind::plan_step, .text = "op at a.cpp:1", .number = index});
        events.chip(chip,
                    {.kind = EventKind::enter, .text = "all_reduce 'a'", .number = collective});
      };
      for (int chip = 0; chip < chips; ++chip) {
        if (chip != last) enter(chip);
      }
      enter(last);
      for (int chip = 0; chip < chips; ++chip) {
        events.chip(chip, {.kind = EventKind::leave,
                           .peer = chip == last ? -1 : last,
                           .text = "all_reduce 'a'",
                           .number = collective});
      }
    }
    for (int chip = 0; chip < chips; ++chip) {
      events.chip(chip, {.kind = EventKind::run, .flags = kEventEnds, .number = step});
    }
    events.of(RingKind::shared, 0,
              {.kind = EventKind::message_out, .text = "report", .number = step + 1});
    events.of(RingKind::link, -1,
              {.kind = EventKind::message_in, .peer = 0, .text = "report", .number = step + 1});
  }
}

/// Removes the oldest events of every ring, and makes some records half written.
void tear(Snapshot& job, std::mt19937_64& random) {
  for (EventRing& ring : job.rings) {
    if (ring.events.empty()) continue;
    const auto gone = static_cast<std::ptrdiff_t>(random() % ring.events.size());
    ring.events.erase(ring.events.begin(), ring.events.begin() + gone);
    std::erase_if(ring.events, [&](const Event&) { return random() % 40 == 0; });
  }
}

TEST(TraceProperty, AWholeHistoryHasAllItsFlows) {
  for (const std::uint64_t seed : testing::seeds(20)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    MadeJob made(2, 2);
    Snapshot job = std::move(made.snapshot);
    MadeEvents events(job);
    add_steps(events, 4, 1 + seed % 5, random);
    const Written written = trace_of(job);
    EXPECT_EQ(TraceGrammar::fault_of(written.json()), "");
    EXPECT_EQ(written.counts.dropped_flows, 0U);
    EXPECT_EQ(written.counts.lost_begins, 0U);
    EXPECT_EQ(written.counts.flows, (1 + seed % 5) * (3 * 3 + 1));
  }
}

TEST(TraceProperty, TornHistoriesKeepToTheGrammar) {
  for (const std::uint64_t seed : testing::seeds(200)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    MadeJob made(2, 2);
    Snapshot job = std::move(made.snapshot);
    MadeEvents events(job);
    add_steps(events, 4, 1 + seed % 8, random);
    tear(job, random);
    const Written written = trace_of(job);
    ASSERT_EQ(TraceGrammar::fault_of(written.json()), "");
    TraceOptions options{.last_s = 1e-6 * static_cast<double>(1 + random() % 100)};
    ASSERT_EQ(TraceGrammar::fault_of(trace_of(job, options).json()), "");
  }
}

TEST(TraceProperty, AnyEventsKeepToTheGrammar) {
  for (const std::uint64_t seed : testing::seeds(300)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    MadeJob made(2, 1);
    Snapshot job = std::move(made.snapshot);
    job.unix_minus_monotonic_ns = static_cast<std::int64_t>(random());
    MadeEvents events(job);
    for (EventRing& ring : job.rings) {
      std::int64_t at = 0;
      const std::uint64_t count = random() % 60;
      for (std::uint64_t i = 0; i < count; ++i) {
        at += static_cast<std::int64_t>(random() % 3);
        ring.events.push_back(
            {.at_ns = random() % 50 == 0 ? static_cast<std::int64_t>(random() >> 14U) : at,
             .kind = static_cast<EventKind>(1 + random() % 19),
             .flags = static_cast<std::uint8_t>(random() % 2),
             .peer = static_cast<int>(random() % 4) - 1,
             .text = random() % 2 == 0 ? "a" : "",
             .number = random() % 4,
             .value = random()});
      }
    }
    if (std::ranges::all_of(job.rings, [](const EventRing& ring) { return ring.events.empty(); })) {
      continue;
    }
    ASSERT_EQ(TraceGrammar::fault_of(trace_of(job).json()), "");
  }
}

}  // namespace
}  // namespace weft::trace_test
