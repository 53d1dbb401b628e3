#include "inspect/history/timeline.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft::timeline_test {
namespace {

/// Returns a line for each slice: its kind and number, its begin and end, and "unfinished" if its
/// end isn't known.
std::string lines_of(const Track& track) {
  std::string lines;
  for (const Slice& slice : track.slices) {
    lines += fmt::format("{} {}: {}-{}{}\n", to_string(slice.begin->kind), slice.begin->number,
                         slice.begin_ns, slice.end_ns, slice.unfinished ? " unfinished" : "");
  }
  return lines;
}

EventRing ring_of(std::vector<Event> events) { return {.events = std::move(events)}; }

TEST(Timeline, NestsWhatAChipDoes) {
  const EventRing ring = ring_of({
      {.at_ns = 10, .kind = EventKind::step, .number = 1},
      {.at_ns = 20, .kind = EventKind::run, .number = 7},
      {.at_ns = 30, .kind = EventKind::plan_step, .number = 0},
      {.at_ns = 40, .kind = EventKind::plan_step, .number = 1},
      {.at_ns = 45, .kind = EventKind::enter, .number = 9},
      {.at_ns = 50, .kind = EventKind::leave, .number = 9},
      {.at_ns = 60, .kind = EventKind::run, .flags = kEventEnds, .number = 7},
      {.at_ns = 70, .kind = EventKind::step, .number = 2},
      {.at_ns = 80, .kind = EventKind::run, .number = 8},
      {.at_ns = 90, .kind = EventKind::commit, .number = 1},
  });
  const Track track = to_track(ring);
  EXPECT_EQ(lines_of(track),
            "step 1: 10-70\n"
            "run 7: 20-60\n"
            "plan_step 0: 30-40\n"
            "plan_step 1: 40-60\n"
            "enter 9: 45-50\n"
            "step 2: 70-91 unfinished\n"
            "run 8: 80-91 unfinished\n"
            "commit 1: 90-91 unfinished\n");
  EXPECT_EQ(track.slices[4].end, &ring.events[5]);
  EXPECT_EQ(track.lost_begins, 0U);
}

TEST(Timeline, LeavesOutEndsWhoseBeginningIsGone) {
  const EventRing ring = ring_of({
      {.at_ns = 10, .kind = EventKind::leave, .number = 9},
      {.at_ns = 20, .kind = EventKind::run, .flags = kEventEnds, .number = 7},
      {.at_ns = 30, .kind = EventKind::run, .number = 8},
      {.at_ns = 40, .kind = EventKind::run, .flags = kEventEnds, .number = 8},
  });
  const Track track = to_track(ring);
  EXPECT_EQ(lines_of(track), "run 8: 30-40\n");
  EXPECT_EQ(track.lost_begins, 2U);
}

/// Two records are missing because they were being written: the end of #5 and the beginning of #6.
TEST(Timeline, DoesntEndOneCollectiveWithAnother) {
  const EventRing ring = ring_of({
      {.at_ns = 10, .kind = EventKind::enter, .number = 5},
      {.at_ns = 20, .kind = EventKind::leave, .number = 6},
      {.at_ns = 30, .kind = EventKind::enter, .number = 7},
      {.at_ns = 40, .kind = EventKind::leave, .number = 7},
  });
  const Track track = to_track(ring);
  EXPECT_EQ(lines_of(track), "enter 5: 10-30 unfinished\nenter 7: 30-40\n");
  EXPECT_EQ(track.lost_begins, 1U);
}

TEST(Timeline, KeepsMessagesAndMarksApart) {
  const EventRing ring = ring_of({
      {.at_ns = 10, .kind = EventKind::message_in, .number = 1},
      {.at_ns = 50, .kind = EventKind::state},
      {.at_ns = 60, .kind = EventKind::log, .number = 2},
      {.at_ns = 5000, .kind = EventKind::message_out, .number = 3},
      {.at_ns = 9000, .kind = EventKind::checkpoint, .text = "begins", .number = 4},
  });
  const Track track = to_track(ring);
  EXPECT_EQ(lines_of(track), "message_in 1: 10-50\nmessage_out 3: 5000-6000\n");
  ASSERT_EQ(track.marks.size(), 2U);
  EXPECT_EQ(track.marks[0].at_ns, 60);
  EXPECT_EQ(track.marks[1].at_ns, 9000);
}

TEST(Timeline, PutsEventsOfOneTimeApart) {
  const EventRing ring = ring_of({
      {.at_ns = 10, .kind = EventKind::run, .number = 1},
      {.at_ns = 10, .kind = EventKind::run, .flags = kEventEnds, .number = 1},
      {.at_ns = INT64_MIN, .kind = EventKind::run, .number = 2},
      {.at_ns = INT64_MAX, .kind = EventKind::run, .flags = kEventEnds, .number = 2},
  });
  const Track track = to_track(ring);
  ASSERT_EQ(track.slices.size(), 2U);
  EXPECT_EQ(track.slices[0].end_ns, 11);
  EXPECT_EQ(track.slices[1].begin_ns, 12);
  EXPECT_GT(track.slices[1].end_ns, 12);
}

TEST(Timeline, KnowsWhenStepsWere) {
  const EventRing ring = ring_of({
      {.at_ns = 10, .kind = EventKind::step, .number = 1},
      {.at_ns = 20, .kind = EventKind::step, .number = 2},
      {.at_ns = 30, .kind = EventKind::step, .number = 3},
  });
  const std::vector<Track> tracks{to_track(ring)};
  const auto window = window_of_steps(tracks, 2, 2);
  ASSERT_TRUE(window);
  EXPECT_EQ(window->from_ns, 20);
  EXPECT_EQ(window->to_ns, 30);
  EXPECT_FALSE(window_of_steps(tracks, 4, 9));
  EXPECT_FALSE(window_of({}));
}

}  // namespace
}  // namespace weft::timeline_test
