#include "inspect/profile/plan_profile.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "spmd/ops/builder.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/unit/inspect/described.hpp"
#include "tests/unit/inspect/history/made_events.hpp"
#include "tests/unit/transport/format/sample_plan.hpp"

namespace weft::plan_profile_test {
namespace {

using testing::MadeEvents;
using testing::MadeJob;
using Json = nlohmann::json;

constexpr std::uint64_t kProgram = 0xabcdef;
constexpr std::int64_t kMicrosecond = 1000;

/// Tests profiles of two chips that run sample_plan(): a product, an all_reduce, a constant, a wait
/// and a loop. All steps but the wait write events, with the numbers 0, 1, 2 and 3.
class PlanProfileTest : public ::testing::Test {
 protected:
  void put(int chip, Event event, std::int64_t after_us = 1) {
    events.at(now_[chip] + (after_us - 1) * kMicrosecond);
    events.chip(chip, event);
    now_[chip] = events.now_ns;
  }
  /// Adds the events of a run. The product takes `product_us`. The chip waits for 2 us in the
  /// all_reduce, which takes 4 us, and then for 3 us for a commit, which is in the constant's
  /// slice.
  void run(int chip, std::uint64_t number, std::int64_t product_us,
           std::uint64_t program = kProgram) {
    put(chip, {.kind = EventKind::run, .number = number, .value = program});
    put(chip, {.kind = EventKind::plan_step, .text = "dot_general"});
    put(chip, {.kind = EventKind::plan_step, .text = "all_reduce", .number = 1}, product_us);
    put(chip, {.kind = EventKind::enter, .text = "all_reduce", .number = number});
    put(chip, {.kind = EventKind::leave, .number = number, .value = 2 * kMicrosecond}, 2);
    put(chip, {.kind = EventKind::plan_step, .text = "constant", .number = 2});
    put(chip, {.kind = EventKind::commit, .number = number});
    put(chip, {.kind = EventKind::commit, .flags = kEventEnds, .number = number}, 3);
    put(chip, {.kind = EventKind::plan_step, .text = "multiply and 1 more", .number = 3}, 1);
    put(chip, {.kind = EventKind::run, .flags = kEventEnds, .number = number, .value = program});
  }
  PlanTimes times() const { return plan_times(job, kProgram, plan); }
  PlanProfile profile() const {
    return profile_of({.number = 7, .fingerprint = "abc", .site = "the sync at train.cpp:9"}, plan,
                      times(), limits);
  }

  const Plan plan = sample_plan();
  const ChipLimits limits{.f32_flops = 4e9,
                          .bf16_flops = 8e9,
                          .memory = {{64, 6e9}, {96, 2e9}, {1024, 1e9}},
                          .from = "made for a test"};
  Snapshot job = MadeJob(2, 1).snapshot;
  MadeEvents events{job};

 private:
  std::int64_t now_[2] = {10'000'000'000, 10'000'000'000};
};

TEST_F(PlanProfileTest, TimesAreThoseOfTheStepsWithoutTheFirstRunOfAChip) {
  for (const int chip : {0, 1}) run(chip, 1, 1000);
  for (const std::int64_t us : {10, 20, 60}) run(0, 2, us);
  run(1, 2, 30);
  const PlanTimes times = this->times();
  EXPECT_EQ(times.runs, 4U);
  EXPECT_EQ(times.chips, 2);
  ASSERT_EQ(times.steps.size(), 5U);
  EXPECT_EQ(times.steps[0].count, 4U);
  EXPECT_EQ(times.steps[0].median_ns, 20 * kMicrosecond);
  EXPECT_EQ(times.steps[0].total_ns, 120 * kMicrosecond);
  EXPECT_EQ(times.steps[1].median_ns, 4 * kMicrosecond);
  EXPECT_EQ(times.steps[1].waited_ns, 4 * 2 * kMicrosecond);
  EXPECT_EQ(times.steps[2].median_ns, 2 * kMicrosecond) << "without the wait for a commit";
  EXPECT_EQ(times.steps[3].median_ns, 3 * kMicrosecond) << "which is the update_wait's";
  EXPECT_EQ(times.steps[4].median_ns, kMicrosecond);
}

TEST_F(PlanProfileTest, AllTimeIsInAStepOrBetweenSteps) {
  for (const std::int64_t us : {10, 20, 60}) run(0, 1, us);
  const PlanTimes times = this->times();
  std::int64_t sum = times.other_ns;
  for (const StepTimes& step : times.steps) sum += step.total_ns;
  EXPECT_EQ(sum, times.run_ns);
  EXPECT_EQ(times.other_ns, 2 * kMicrosecond) << "from the beginning of a run to its first step";
  const Json json = Json::parse(profile_json(job, profile()));
  double share = json.at("other_s").get<double>() / json.at("total_s").get<double>();
  double seconds = json.at("other_s");
  for (const Json& step : json.at("steps")) {
    share += step.at("share").get<double>();
    seconds += step.at("total_s").get<double>();
  }
  EXPECT_NEAR(share, 1, 1e-9);
  EXPECT_NEAR(seconds, json.at("total_s").get<double>(), 1e-12);
}

TEST_F(PlanProfileTest, OtherProgramsAndRunsWithoutStepsDontCount) {
  run(0, 1, 10);
  run(0, 2, 500, kProgram + 1);
  put(0, {.kind = EventKind::run, .number = 3, .value = kProgram});
  put(0, {.kind = EventKind::run, .flags = kEventEnds, .number = 3, .value = kProgram}, 900);
  put(0, {.kind = EventKind::run, .number = 4, .value = kProgram});
  put(0, {.kind = EventKind::plan_step, .text = "dot_general"});
  const PlanTimes times = this->times();
  EXPECT_EQ(times.runs, 1U) << "the last has no end";
  EXPECT_EQ(times.steps[0].total_ns, 10 * kMicrosecond);
  const auto of_programs = run_times(job);
  EXPECT_EQ(of_programs.at(kProgram), 900 * kMicrosecond);
  EXPECT_EQ(of_programs.at(kProgram + 1), 0) << "it has run once";
}

/// A loop's beginning writes an event for each of its carries, and one for itself.
TEST(PlanTimes, OfALoopAreThoseOfItsIterations) {
  Plan plan;
  Builder b(plan.program);
  const ValueId x = plan.program.add_input({DType::f32, {8, 8}}, InputKind::data, "x", {});
  const ValueId loop = b.loop(2, false);
  const ValueId first = b.border(OpKind::carry, {loop, x});
  const ValueId second = b.border(OpKind::carry, {loop, x});
  const ValueId sum = b.binary(OpKind::add, first, second);
  b.border(OpKind::next, {loop, first, sum});
  b.border(OpKind::next, {loop, second, first});
  plan.steps = {{StepKind::begin, 0, 3},
                {StepKind::loop, 3, 1},
                {StepKind::compute, 4, 1},
                {StepKind::compute, 5, 1},
                {StepKind::repeat, 0, 0}};
  Snapshot job = MadeJob(1, 1).snapshot;
  MadeEvents events(job);
  events.chip(0, {.kind = EventKind::run, .value = kProgram});
  for (const std::uint64_t number : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 3U, 4U, 5U, 6U}) {
    events.chip(0, {.kind = EventKind::plan_step, .number = number});
  }
  events.chip(0, {.kind = EventKind::run, .flags = kEventEnds, .value = kProgram});
  const PlanTimes times = plan_times(job, kProgram, plan);
  EXPECT_EQ(times.steps[0].count, 1U);
  EXPECT_EQ(times.steps[0].total_ns, 3 * kMicrosecond);
  for (const std::size_t step : {1U, 2U, 3U, 4U}) {
    EXPECT_EQ(times.steps[step].count, 2U) << step;
    EXPECT_EQ(times.steps[step].median_ns, kMicrosecond) << step;
  }
}

TEST_F(PlanProfileTest, EventsOfAnotherPlanAreRefused) {
  put(0, {.kind = EventKind::run, .value = kProgram});
  put(0, {.kind = EventKind::plan_step, .number = 4});
  put(0, {.kind = EventKind::run, .flags = kEventEnds, .value = kProgram});
  testing::expect_error(Errc::corrupt, {"an event names step 4, but the plan has 4 steps"},
                        [&] { times(); });
}

TEST_F(PlanProfileTest, AStepIsComparedWithTheLimitThatTakesLonger) {
  run(0, 1, 1);
  run(0, 2, 1);
  const PlanProfile profile = this->profile();
  // By the limits, the product's 64 flops take 16 ns and its 96 bytes 48 ns. It took 1 us.
  const ProfiledStep& product = profile.steps[0];
  EXPECT_EQ(limits.bytes(1), 6e9);
  EXPECT_EQ(limits.bytes(95), 6e9);
  EXPECT_EQ(limits.bytes(1 << 20), 1e9);
  EXPECT_EQ(product.cost.flops, 64);
  EXPECT_EQ(product.cost.bytes(), 96);
  EXPECT_DOUBLE_EQ(product.flops, 64e6);
  EXPECT_DOUBLE_EQ(product.bytes, 96e6);
  EXPECT_DOUBLE_EQ(product.of_limit, 0.048);
  EXPECT_EQ(product.bound, Bound::memory);
  EXPECT_EQ(product.type, "f32[2,4] x f32[2,4]");
  EXPECT_EQ(product.place, "train.cpp:41");
  EXPECT_EQ(profile.steps[3].bound, Bound::nothing) << "a wait has no limit";
  EXPECT_EQ(profile.steps[4].op, "multiply and 1 more");
  ChipLimits fast_memory = limits;
  fast_memory.memory = {{0, 1e12}};
  const PlanProfile other = profile_of({}, plan, times(), fast_memory);
  EXPECT_EQ(other.steps[0].bound, Bound::compute);
  EXPECT_DOUBLE_EQ(other.steps[0].of_limit, 0.016);
}

/// Chips that share a core take turns. A short step ends before another chip's turn, so only the
/// mean over a run includes turns.
TEST_F(PlanProfileTest, TurnsOfOthersAreInTheMeanOfARunAlone) {
  run(0, 1, 10);
  const PlanProfile alone = this->profile();
  ChipLimits shared = limits;
  shared.core_share = 0.25;
  const PlanProfile profile = profile_of({}, plan, times(), shared);
  EXPECT_DOUBLE_EQ(profile.steps[0].of_limit, alone.steps[0].of_limit);
  EXPECT_DOUBLE_EQ(profile.of_limit, 4 * alone.of_limit);
  EXPECT_EQ(profile_text(job, alone).find("take turns"), std::string::npos);
  const std::string text = profile_text(job, profile);
  for (const char* line : {"\nlimits of a chip: 4.0 GFLOP/s in f32, 8.0 in bf16; 6.0 GB/s of 64 ",
                           "\n"
                           "limits on average during a run, because chips take turns: 1.0 GFLOP/s "
                           "in f32, 2.0 in bf16; 1.5 GB/s of 64 "}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

TEST_F(PlanProfileTest, ARunInLessTimeThanTheLimitsAllowIsTold) {
  run(0, 1, 1);
  EXPECT_EQ(profile_text(job, profile()).find("the limits are too low"), std::string::npos);
  ChipLimits low = limits;
  low.f32_flops /= 1e6;
  const std::string text = profile_text(job, profile_of({}, plan, times(), low));
  EXPECT_NE(text.find("the limits are too low"), std::string::npos) << text;
}

TEST_F(PlanProfileTest, TheTableHasARowForEachStepAndTheSum) {
  run(0, 1, 10);
  const std::string text = profile_text(job, profile());
  for (const char* part :
       {"program 7: the sync at train.cpp:9", "1 runs of 1 chips", "made for a test", "dot_general",
        "all_reduce", "wait for commits", "multiply and 1 more", "between steps", "average run",
        "100.0 %", "chips waited for others in"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST_F(PlanProfileTest, TheDocumentIsAsItsSchemaSays) {
  run(0, 1, 10);
  testing::expect_described(profile_json(job, profile()));
}

/// All elements of the SVG are closed, texts are escaped, and each step with arithmetic has a
/// point.
TEST_F(PlanProfileTest, TheRooflineIsWellFormed) {
  run(0, 1, 10);
  PlanProfile profile = this->profile();
  profile.program.site = "<a & \"b\">";
  profile.steps[0].place = "]]>\x1b";
  const std::string svg = roofline_svg(job, profile);
  EXPECT_TRUE(svg.starts_with("<svg ")) << svg;
  EXPECT_TRUE(svg.ends_with("</svg>\n")) << svg;
  EXPECT_NE(svg.find("&lt;a &amp; &quot;b&quot;&gt;"), std::string::npos) << svg;
  EXPECT_EQ(svg.find('\x1b'), std::string::npos);
  std::vector<std::string> open;
  std::size_t points = 0;
  for (std::size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    const std::size_t end = svg.find('>', at);
    ASSERT_NE(end, std::string::npos);
    ASSERT_GT(svg.find('<', at + 1), end) << "a < in a tag";
    const std::string tag = svg.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(tag.front() == '/' ? 1 : 0, tag.find(' '));
    if (tag.front() == '/') {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
      if (name == "circle") ++points;
    }
  }
  EXPECT_TRUE(open.empty());
  EXPECT_EQ(points, 3U) << "the product, the all_reduce and the loop";
}

}  // namespace
}  // namespace weft::plan_profile_test
