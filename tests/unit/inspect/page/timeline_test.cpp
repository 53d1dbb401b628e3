#include "inspect/page/timeline.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/unit/inspect/made_job.hpp"

namespace weft::timeline_test {
namespace {

using Json = nlohmann::json;

/// Returns a ring of chip 0 with these events.
EventRing ring_of(std::vector<Event> events) {
  return {.kind = RingKind::chip, .worker = 0, .chip = 0, .events = std::move(events)};
}

/// Returns a line "kind begin duration peer" for each slice.
std::string text_of(const std::vector<TimelineSlice>& slices) {
  std::string text;
  for (const TimelineSlice& slice : slices) {
    text += fmt::format("{} {} {} {}\n", static_cast<int>(slice.kind), slice.begin_ns,
                        slice.duration_ns, slice.peer);
  }
  return text;
}

TEST(TimelineRow, ACollectiveIsAWaitAndThenAnExchange) {
  const TimelineRow row = timeline_row(ring_of({
      {.at_ns = 10, .kind = EventKind::run},
      {.at_ns = 20, .kind = EventKind::enter, .text = "all_reduce", .number = 3},
      {.at_ns = 70, .kind = EventKind::leave, .peer = 2, .number = 3, .value = 40},
      {.at_ns = 90, .kind = EventKind::run, .flags = kEventEnds},
  }));
  EXPECT_EQ(text_of(row.runs), "0 10 80 -1\n");
  EXPECT_EQ(text_of(row.slices), "1 20 40 2\n2 60 10 2\n");
  EXPECT_EQ(row.slices.front().text, "all_reduce");
}

TEST(TimelineRow, AWaitIsNoLongerThanItsCollective) {
  const TimelineRow row = timeline_row(ring_of({
      {.at_ns = 20, .kind = EventKind::enter, .number = 3},
      {.at_ns = 30, .kind = EventKind::leave, .number = 3, .value = std::uint64_t(-1)},
  }));
  EXPECT_EQ(text_of(row.slices), "1 20 10 -1\n2 30 0 -1\n");
}

TEST(TimelineRow, AStepOfAPlanLastsUntilTheNextEvent) {
  const TimelineRow row = timeline_row(ring_of({
      {.at_ns = 5, .kind = EventKind::plan_step, .text = "tanh"},
      {.at_ns = 9, .kind = EventKind::plan_step, .text = "dot"},
      {.at_ns = 12, .kind = EventKind::enter, .number = 1},
      {.at_ns = 13, .kind = EventKind::leave, .number = 1},
  }));
  EXPECT_EQ(text_of(row.slices), "4 5 4 -1\n4 9 3 -1\n2 12 1 -1\n");
}

TEST(TimelineRow, WhatHasNotEndedIsOpen) {
  const TimelineRow row = timeline_row(ring_of({
      {.at_ns = 1, .kind = EventKind::run},
      {.at_ns = 2, .kind = EventKind::enter, .number = 1},
  }));
  EXPECT_EQ(text_of(row.runs), "0 1 -1 -1\n");
  EXPECT_EQ(text_of(row.slices), "1 2 -1 -1\n");
}

TEST(TimelineRow, EndsWithoutABeginningAreLeftOut) {
  const TimelineRow row = timeline_row(ring_of({
      {.at_ns = 1, .kind = EventKind::leave, .number = 1},
      {.at_ns = 2, .kind = EventKind::run, .flags = kEventEnds},
      {.at_ns = 3, .kind = EventKind::enter, .number = 2},
      {.at_ns = 4, .kind = EventKind::leave, .number = 9},
      {.at_ns = 5, .kind = EventKind::load, .flags = kEventEnds},
  }));
  EXPECT_TRUE(row.runs.empty());
  EXPECT_EQ(text_of(row.slices), "1 3 -1 -1\n");  // no event says that the chip left
}

TEST(TimelineRow, WhatBeginsInsideOfAnotherCutsItOff) {
  const TimelineRow row = timeline_row(ring_of({
      {.at_ns = 1, .kind = EventKind::compile},
      {.at_ns = 5, .kind = EventKind::admission},
      {.at_ns = 9, .kind = EventKind::admission, .flags = kEventEnds},
      {.at_ns = 9, .kind = EventKind::compile, .flags = kEventEnds},
      {.at_ns = 20, .kind = EventKind::enter, .number = 1},
      {.at_ns = 30, .kind = EventKind::error, .text = "boom"},
  }));
  EXPECT_EQ(text_of(row.slices), "5 1 4 -1\n6 5 4 -1\n1 20 10 -1\n10 30 0 -1\n");
}

/// Slices never overlap, even if a damaged ring has events in any order.
TEST(TimelineRow, SlicesNeverOverlap) {
  constexpr EventKind kKinds[] = {EventKind::run,    EventKind::enter,     EventKind::leave,
                                  EventKind::commit, EventKind::plan_step, EventKind::load,
                                  EventKind::error};
  std::uint64_t state = 1;
  const auto random = [&](std::uint64_t below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % below;
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<Event> events;
    std::int64_t at = 0;
    for (int i = 0; i < 40; ++i) {
      at += static_cast<std::int64_t>(random(10)) - 2;
      events.push_back({.at_ns = at,
                        .kind = kKinds[random(7)],
                        .flags = static_cast<std::uint8_t>(random(2)),
                        .number = random(2),
                        .value = random(12)});
    }
    const TimelineRow row = timeline_row(ring_of(std::move(events)));
    for (const auto* slices : {&row.runs, &row.slices}) {
      for (std::size_t i = 1; i < slices->size(); ++i) {
        const TimelineSlice& before = (*slices)[i - 1];
        ASSERT_GE(before.duration_ns, 0) << "round " << round;
        ASSERT_LE(before.begin_ns + before.duration_ns, (*slices)[i].begin_ns) << "round " << round;
      }
    }
  }
}

TEST(TimelineJson, HasColumnsWithDifferencesOfTimes) {
  testing::MadeJob job(1, 1);
  job.snapshot.rings.push_back(ring_of({
      {.at_ns = 100, .kind = EventKind::step, .number = 7},
      {.at_ns = 110, .kind = EventKind::run},
      {.at_ns = 150, .kind = EventKind::run, .flags = kEventEnds},
      {.at_ns = 160, .kind = EventKind::run},
      {.at_ns = 190, .kind = EventKind::run, .flags = kEventEnds},
  }));
  job.snapshot.rings.push_back({.kind = RingKind::link, .worker = 0});
  const Json json = Json::parse(timeline_json(job.snapshot));
  EXPECT_EQ(json.at("now"), 190);
  ASSERT_EQ(json.at("rows").size(), 1U);
  const Json& row = json.at("rows")[0];
  EXPECT_EQ(row.at("name"), "chip 0");
  EXPECT_EQ(row.at("runs").at("t"), Json({110, 50}));
  EXPECT_EQ(row.at("runs").at("d"), Json({40, 30}));
  EXPECT_EQ(json.at("steps"), Json::parse(R"({"t": [100], "n": [7]})"));
  const Json later = Json::parse(timeline_json(job.snapshot, {.after_ns = 150, .now_ns = 500}));
  EXPECT_EQ(later.at("now"), 500);
  EXPECT_EQ(later.at("rows")[0].at("runs").at("t"), Json({160}));
  EXPECT_TRUE(later.at("steps").at("t").empty());
}

TEST(TimelineJson, TextIsMadeUtf8) {
  testing::MadeJob job(1, 1);
  job.snapshot.rings.push_back(
      ring_of({{.at_ns = 1, .kind = EventKind::error, .text = "a\xff\"b"}}));
  const Json json = Json::parse(timeline_json(job.snapshot));
  EXPECT_EQ(json.at("labels")[0], "a\xef\xbf\xbd\"b");
}

}  // namespace
}  // namespace weft::timeline_test
