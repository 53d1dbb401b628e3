#include "inspect/views/top_frame.hpp"

#include <gtest/gtest.h>

#include <fmt/ranges.h>

#include "inspect/views/colours.hpp"
#include "inspect/views/job_views.hpp"
#include "tests/unit/inspect/made_job.hpp"

namespace weft::top_frame_test {
namespace {

using testing::MadeJob;

const Why kNoWhy{.verdict = Verdict::well};

std::string text_of(const MadeJob& job, const TopUi& ui, TopSize size = {.lines = 9}) {
  return fmt::format("{}", fmt::join(frame({job.snapshot, nullptr, kNoWhy}, ui, size), "\n"));
}

MadeJob stopped_job() {
  MadeJob job(2, 2);
  job.pass("a");
  job.wait_for(1, "b");
  job.process(1).state = 'T';
  return job;
}

TEST(TopFrame, ShowsEveryActor) {
  EXPECT_EQ(text_of(stopped_job(), {.colours = false}, {.lines = 10, .columns = 76}),
            "made  012345  stopped 41 s  step 4  0 steps/s\n"
            " actor     state     for  step  CPU  came last  waits  unread  doing\n"
            ">trainer   running  41 s     4                              0\n"
            " worker 0  waiting  41 s     4                              0  waits for its\n"
            " worker 1  stopped  41 s     4                              0\n"
            " chip 0    waiting  41 s     5                              0  in all_reduce\n"
            " chip 1    waiting  41 s     5                              0  in all_reduce\n"
            " chip 2    stopped  41 s     5                              0  after all_red\n"
            " chip 3    stopped  41 s     5                              0  after all_red\n"
            "s sort (actor)  / filter  Enter details  w why  m mesh  Esc back  q quit");
}

TEST(TopFrame, HasALineForASilentHost) {
  MadeJob job = stopped_job();
  job.snapshot.hosts = {
      {.host = 0, .machine = "node0"},
      {.host = 1, .machine = "node7", .silence = "ssh: no route to host", .silent_s = 7}};
  const auto lines = frame({job.snapshot, nullptr, kNoWhy}, {.colours = false}, {.columns = 90});
  EXPECT_EQ(lines[1], "host 1 (node7): silent 7.0 s");
  EXPECT_TRUE(lines[2].starts_with(" actor ")) << lines[2];
}

TEST(TopFrame, HasWhatTheLoopReportedAndWhatAChipWaitsAndTakes) {
  MadeJob before(1, 1);
  before.chip(0).tid = 4712;
  before.process(0).threads.push_back({.tid = 4712, .core_ns = 0});
  before.snapshot.metrics = {{"step", 7}, {"loss", 0.31}, {"test_accuracy", 0.975}};
  before.snapshot.waits.push_back(
      {.chip = 0, .calls = {{.count = 4, .times_last = 1, .waited_ns = 2'500'000'000}}});
  MadeJob now = before;
  now.snapshot.at_ns += MadeJob::kSecond;
  now.process(0).threads.back().core_ns = MadeJob::kSecond / 2;
  now.process(0).core_ns = 2 * MadeJob::kSecond;
  const auto lines =
      frame({now.snapshot, &before.snapshot, kNoWhy}, {.colours = false}, {.columns = 90});
  EXPECT_TRUE(lines[0].ends_with("loss 0.31")) << lines[0];
  EXPECT_EQ(lines[1], "test_accuracy 0.975");
  EXPECT_EQ(lines[2], " actor     state     for  step    CPU  came last   waits  unread  doing");
  EXPECT_EQ(lines[4], " worker 0  running  42 s     4  200 %                          0");
  EXPECT_EQ(lines[5], " chip 0    idle     42 s     4   50 %       25 %  2.50 s       0");
}

TEST(TopFrame, ColoursSayWhatStandsWaitsAndWorks) {
  const MadeJob job = stopped_job();
  const auto lines = frame({job.snapshot, nullptr, kNoWhy}, {.selected = 6}, {});
  EXPECT_TRUE(lines[2].starts_with("\x1b[32m trainer")) << lines[2];
  EXPECT_TRUE(lines[3].starts_with("\x1b[33m worker 0")) << lines[3];
  EXPECT_TRUE(lines[4].starts_with("\x1b[31m worker 1")) << lines[4];
  // A worker that keeps the job from continuing is red, even if its state is a normal one.
  MadeJob busy(2, 1);
  busy.worker(1).state = ActorState::user_code;
  const Why why{.verdict = Verdict::hung, .roots = {{.actor = "worker 1", .workers = {1}}}};
  const auto accused = frame({busy.snapshot, nullptr, why}, {}, {});
  EXPECT_TRUE(accused[4].starts_with("\x1b[31m worker 1")) << accused[4];
}

TEST(TopFrame, KeepsTheSelectedRowOnASmallScreen) {
  const std::string text =
      text_of(stopped_job(), {.selected = 6, .colours = false}, {.lines = 5, .columns = 12});
  EXPECT_EQ(text,
            "made  012345\n"
            " actor     s\n"
            " chip 2    s\n"
            ">chip 3    s\n"
            "s sort (acto");
}

TEST(TopFrame, SortsAndFilters) {
  TopUi ui{.colours = false};
  press(ui, "s");
  EXPECT_EQ(ui.sort, TopSort::state);
  const std::string text = text_of(stopped_job(), ui);
  EXPECT_LT(text.find("worker 1"), text.find("chip 0"));
  for (const char* key : {"/", "c", "h", "i", "p", "x", "\x7f", "\r"}) press(ui, key);
  EXPECT_EQ(ui.filter, "chip");
  EXPECT_EQ(text_of(stopped_job(), ui).find("trainer"), std::string::npos);
  press(ui, "\x1b");
  EXPECT_EQ(ui.filter, "");
}

TEST(TopFrame, DescendsIntoAnActorAndComesBack) {
  TopUi ui{.colours = false};
  for (const char* key : {"j", "\x1b[B", "k", "\r"}) press(ui, key);
  EXPECT_EQ(ui.page, TopPage::detail);
  EXPECT_NE(text_of(stopped_job(), ui).find("actor        worker 0"), std::string::npos);
  press(ui, "\x1b");
  EXPECT_EQ(ui.page, TopPage::actors);
  press(ui, "m");
  EXPECT_NE(text_of(stopped_job(), ui).find("1    | T T"), std::string::npos)
      << text_of(stopped_job(), ui);
  press(ui, "q");
  EXPECT_TRUE(ui.quit);
}

TEST(TopFrame, HasEscapeSequencesOnlyForColours) {
  EXPECT_EQ(text_of(stopped_job(), {.colours = false}).find('\x1b'), std::string::npos);
  EXPECT_NE(text_of(stopped_job(), {}).find('\x1b'), std::string::npos);
}

TEST(TopFrame, AnySizeAndSelectionIsAFrameOfThatSize) {
  const MadeJob job = stopped_job();
  for (int lines = 1; lines < 15; ++lines) {
    for (const int selected : {-5, 0, 3, 1000}) {
      const auto shown = frame({job.snapshot, nullptr, kNoWhy},
                               {.selected = selected, .colours = false}, {lines, lines * 3});
      EXPECT_EQ(shown.size(), static_cast<std::size_t>(std::max(2, lines)));
    }
  }
}

TEST(TopFrame, KeysAreSplit) {
  EXPECT_EQ(split_keys("s\x1b[A/\x1b"), (std::vector<std::string>{"s", "\x1b[A", "/", "\x1b"}));
}

TEST(JobViews, AStoppedJobIsStoppedAndAHungOneHung) {
  const MadeJob stopped = stopped_job();
  EXPECT_NE(ps_text(std::span(&stopped.snapshot, 1)).find("stopped  41 s"), std::string::npos);
  const MadeJob job(2, 1);
  EXPECT_NE(ps_text(std::span(&job.snapshot, 1)).find("hung   41 s"), std::string::npos)
      << ps_text(std::span(&job.snapshot, 1));
}

TEST(JobViews, ACancelledJobIsNotRed) {
  MadeJob job(2, 1);
  job.snapshot.status = JobStatus::cancelled;
  const std::string text = ps_text(std::span(&job.snapshot, 1));
  EXPECT_NE(text.find(" cancelled "), std::string::npos) << text;
  EXPECT_EQ(colour_of("cancelled"), "");
  EXPECT_EQ(colour_of("failed"), kRed);
}

/// Every table uses the same heading for the same thing. Headings are in small letters, except for
/// names that have capitals.
TEST(JobViews, HeadingsAreThoseOfTheOneList) {
  const MadeJob job = stopped_job();
  EXPECT_TRUE(ps_text(std::span(&job.snapshot, 1)).starts_with("job  "));
  const std::string heading = "for  step  ";
  for (const std::string& text :
       {ps_text(std::span(&job.snapshot, 1)), actors_text(job.snapshot), text_of(job, {})}) {
    EXPECT_NE(text.find(heading), std::string::npos) << text;
    EXPECT_EQ(text.find("BOX"), std::string::npos);
    EXPECT_EQ(text.find(" box "), std::string::npos);
  }
  for (const std::string& text : {actors_text(job.snapshot), text_of(job, {}, {.columns = 120})}) {
    EXPECT_NE(text.find("came last  waits  unread  "), std::string::npos) << text;
  }
}

TEST(JobViews, AWorkerWhoseChipsWaitIsWaiting) {
  const MadeJob job = stopped_job();
  EXPECT_NE(actors_text(job.snapshot).find("worker 0  4711  waiting"), std::string::npos)
      << actors_text(job.snapshot);
  MadeJob busy = stopped_job();
  busy.chip(1).state = ActorState::running;
  EXPECT_NE(actors_text(busy.snapshot).find("worker 0  4711  running"), std::string::npos);
}

TEST(JobViews, TheMeshHasALetterForEachChip) {
  EXPECT_TRUE(mesh_text(stopped_job().snapshot, false)
                  .starts_with("data | model 0..1\n0    | w w\n1    | T T\n"));
}

TEST(JobViews, TheMeshHasTheStepOfEachChip) {
  Snapshot job = stopped_job().snapshot;
  for (ActorRow& row : job.rows) {
    row.step = row.kind == ActorKind::device ? (row.worker == 1 ? 9 : 10) : 11;
  }
  EXPECT_TRUE(
      mesh_steps_text(job, false).starts_with("data | model 0..1\n0    | 10 10\n1    |  9  9\n"))
      << mesh_steps_text(job, false);
  EXPECT_NE(mesh_steps_text(job, true).find("1    | \x1b[33m 9\x1b[0m"), std::string::npos);
}

}  // namespace
}  // namespace weft::top_frame_test
