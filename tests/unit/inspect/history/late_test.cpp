#include "inspect/history/late.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/inspect/history/made_events.hpp"

namespace weft::late_test {
namespace {

using Json = nlohmann::json;
using testing::MadeEvents;
using testing::MadeJob;

/// Returns the entry of 100 calls: 90 waited below 256 ns, 9 below 512 ns, and one below 1024 ns.
LedgerEntry entry(std::string_view text, std::uint64_t times_last, std::uint64_t waited_ns) {
  return {.text = text,
          .count = 100,
          .times_last = times_last,
          .waited_ns = waited_ns,
          .waits = {{0, 90}, {256, 9}, {512, 1}, {1024, 0}}};
}

/// Returns a job of two workers with one chip each. Chip 0 waits in 'a' for chip 1, whose worker is
/// at app.cpp:9.
Snapshot waited_job() {
  MadeJob made(2, 1);
  Snapshot job = std::move(made.snapshot);
  job.waits = {{.chip = 0,
                .calls = {entry("all_reduce 'a'", 5, 3'000'000'000), entry("barrier", 50, 0)},
                .waited_for_ns = {0, 3'000'000'000}},
               {.chip = 1,
                .calls = {entry("all_reduce 'a'", 95, 1'000'000'000), entry("barrier", 50, 0)},
                .waited_for_ns = {1'000'000'000, 0}}};
  return job;
}

TEST(Late, NamesWhoIsAwaitedMostFirst) {
  const Late late = find_late(waited_job());
  ASSERT_EQ(late.chips.size(), 2U);
  EXPECT_EQ(late.chips[0].chip, 1);
  EXPECT_EQ(late.chips[0].worker, 1);
  EXPECT_EQ(late.chips[0].times_last, 145U);
  EXPECT_EQ(late.chips[0].collectives, 200U);
  EXPECT_DOUBLE_EQ(late.chips[0].awaited_s, 3);
  EXPECT_DOUBLE_EQ(late.chips[0].waited_s, 1);
  EXPECT_DOUBLE_EQ(late.chips[0].share, 0.75);
  EXPECT_FALSE(late.chips[0].own_above_s);
  EXPECT_DOUBLE_EQ(late.chips[1].awaited_s, 1);
}

TEST(Late, SumsUpEachCall) {
  const Late late = find_late(waited_job());
  ASSERT_EQ(late.calls.size(), 2U);
  const LateCall& call = late.calls[0];
  EXPECT_EQ(call.text, "all_reduce 'a'");
  EXPECT_EQ(call.calls, 200U);
  EXPECT_DOUBLE_EQ(call.waited_s, 4);
  EXPECT_DOUBLE_EQ(call.p50_s.value(), 256e-9);
  EXPECT_DOUBLE_EQ(call.p99_s.value(), 512e-9);
  EXPECT_EQ(call.last_chip, 1);
  EXPECT_EQ(call.times_last, 95U);
}

TEST(Late, KnowsNoBoundOfTheLastBucket) {
  Snapshot job = waited_job();
  for (ChipWaits& waits : job.waits) waits.calls[0].waits = {{0, 1}, {256, 99}};
  const LateCall call = find_late(job).calls.at(0);
  EXPECT_FALSE(call.p50_s);
  EXPECT_EQ(Json::parse(late_json(job)).at("calls")[0].at("p99_s"), Json());
}

/// Chip 1 computes for 9 us, chips 0 and 2 for 2 us. Chip 2 is the last in the next collective, but
/// only because it waited for a commit, so it isn't to blame.
TEST(Late, TellsOwnTimeFromWaits) {
  MadeJob made(3, 1);
  Snapshot job = std::move(made.snapshot);
  MadeEvents events(job);
  const auto at = [&](std::int64_t us, int chip, Event event) {
    events.at(us * 1000);
    event.text = event.kind == EventKind::commit ? "" : "all_reduce 'a'";
    events.chip(chip, event);
  };
  for (const int chip : {0, 1, 2}) at(100, chip, {.kind = EventKind::leave, .number = 1});
  at(102, 0, {.kind = EventKind::enter, .number = 2});
  at(109, 1, {.kind = EventKind::enter, .number = 2});
  at(101, 2, {.kind = EventKind::commit, .number = 1});
  at(121, 2, {.kind = EventKind::commit, .flags = kEventEnds, .number = 1});
  at(122, 2, {.kind = EventKind::enter, .number = 2});
  job.waits = {{.chip = 0, .calls = {entry("all_reduce 'a'", 0, 0)}, .waited_for_ns = {0, 0, 0}},
               {.chip = 1, .calls = {entry("all_reduce 'a'", 0, 0)}, .waited_for_ns = {0, 0, 0}},
               {.chip = 2, .calls = {entry("all_reduce 'a'", 0, 0)}, .waited_for_ns = {0, 0, 0}}};
  const Late late = find_late(job);
  ASSERT_EQ(late.chips.size(), 3U);
  EXPECT_NEAR(late.chips[0].own_above_s.value(), 0, 1e-12);
  EXPECT_NEAR(late.chips[1].own_above_s.value(), 7e-6, 1e-12);
  EXPECT_NEAR(late.chips[2].own_above_s.value(), 0, 1e-12);
  EXPECT_NEAR(late.events_s, 22e-6, 1e-12);
}

TEST(Late, FindsTheLineOfACall) {
  Snapshot job = waited_job();
  const Snapshot step = testing::step_of_two_chips();
  job.rings = step.rings;
  job.waits[0].calls[0].text = job.waits[1].calls[0].text = "all_reduce 'w'";
  EXPECT_EQ(find_late(job).calls.at(0).place, "app.cpp:9");
}

TEST(Late, SaysWhyItKnowsNothing) {
  EXPECT_NE(late_text(MadeJob(2, 1).snapshot).find("no ledger"), std::string::npos);
  MadeJob one(1, 1);
  one.snapshot.waits = {{.chip = 0, .calls = {entry("barrier", 1, 0)}, .waited_for_ns = {0}}};
  EXPECT_NE(late_text(one.snapshot).find("one chip"), std::string::npos);
  Snapshot young = waited_job();
  for (ChipWaits& waits : young.waits) waits.calls.clear();
  EXPECT_NE(late_text(young).find("no chip has been in a collective"), std::string::npos);
  Snapshot over;
  over.end = JobEnd{};
  EXPECT_NE(late_text(over).find("ended well"), std::string::npos);
}

TEST(Late, ShowsItAsText) {
  EXPECT_EQ(
      late_text(waited_job()),
      "chip  worker  came last  collectives  others' waits  share   waits  own above median\n"
      "   1       1       72 %          200         3.00 s   75 %  1.00 s                 -\n"
      "   0       0       28 %          200         1.00 s   25 %  3.00 s                 -\n"
      "\n"
      "collective      at  calls   waits   p50 <   p99 <  mostly last\n"
      "all_reduce 'a'        200  4.00 s  256 ns  512 ns  chip 1 (95 times)\n"
      "barrier               200     0 s  256 ns  512 ns  chip 0 (50 times)\n"
      "\n"
      "p50 and p99 are upper bounds of histogram buckets; each bound is twice the previous one\n");
}

TEST(Late, ShowsTheShareOfEachChipInTheMesh) {
  const std::string text = late_mesh_text(waited_job(), true);
  EXPECT_TRUE(text.starts_with("data | model 0..0\n0    | 25\n1    | \x1b[31m75\x1b[0m\n")) << text;
}

TEST(Late, ShowsItAsJson) {
  const Json json = Json::parse(late_json(waited_job()));
  EXPECT_EQ(json.at("schema"), "weft.late/1");
  EXPECT_EQ(json.at("chips")[0].at("chip"), 1);
  EXPECT_EQ(json.at("calls")[0].at("last_chip"), 1);
  EXPECT_EQ(json.at("remark"), "");
}

}  // namespace
}  // namespace weft::late_test
