#include "inspect/views/top_frame.hpp"

#include <gtest/gtest.h>

#include <fmt/ranges.h>

#include "inspect/views/job_views.hpp"
#include "tests/unit/inspect/made_job.hpp"

namespace weft::top_frame_test {
namespace {

using testing::MadeJob;

std::string text_of(const MadeJob& job, const TopUi& ui, TopSize size = {.lines = 9}) {
  return fmt::format("{}", fmt::join(frame(job.snapshot, {}, ui, size), "\n"));
}

MadeJob stopped_job() {
  MadeJob job(2, 2);
  job.pass("a");
  job.wait_for(1, "b");
  job.process(1).state = 'T';
  return job;
}

TEST(TopFrame, ShowsEveryActor) {
  EXPECT_EQ(text_of(stopped_job(), {.colours = false}, {.lines = 10, .columns = 70}),
            "made  012345  stopped 41 s  step 4\n"
            " ACTOR      STATE          FOR     STEP   BOX  DOING\n"
            ">trainer    running       41 s        4     0  \n"
            " worker 0   running       41 s        4     0  \n"
            " worker 1   stopped       41 s        4     0  \n"
            " chip 0     waiting       41 s        5     0  in all_reduce #2 'b' ov\n"
            " chip 1     waiting       41 s        5     0  in all_reduce #2 'b' ov\n"
            " chip 2     stopped       41 s        5     0  after all_reduce #1 'a'\n"
            " chip 3     stopped       41 s        5     0  after all_reduce #1 'a'\n"
            "s sort (board)  / filter  Enter descend  w why  m mesh  Esc back  q qu");
}

TEST(TopFrame, KeepsTheSelectedRowOnASmallScreen) {
  const std::string text =
      text_of(stopped_job(), {.selected = 6, .colours = false}, {.lines = 5, .columns = 12});
  EXPECT_EQ(text,
            "made  012345\n"
            " ACTOR      \n"
            " chip 2     \n"
            ">chip 3     \n"
            "s sort (boar");
}

TEST(TopFrame, SortsAndFilters) {
  TopUi ui{.colours = false};
  press(ui, "s");
  EXPECT_EQ(ui.sort, TopSort::state);
  const std::string text = text_of(stopped_job(), ui);
  EXPECT_LT(text.find("worker 1"), text.find("chip 0"));
  for (const char* key : {"/", "c", "h", "i", "p", "x", "\x7f", "\r"}) press(ui, key);
  EXPECT_EQ(ui.filter, "chip");
  EXPECT_EQ(text_of(stopped_job(), ui).find("worker 0"), std::string::npos);
  press(ui, "\x1b");
  EXPECT_EQ(ui.filter, "");
}

TEST(TopFrame, DescendsIntoAnActorAndComesBack) {
  TopUi ui{.colours = false};
  for (const char* key : {"j", "\x1b[B", "k", "\r"}) press(ui, key);
  EXPECT_EQ(ui.page, TopPage::detail);
  EXPECT_NE(text_of(stopped_job(), ui).find("actor      worker 0"), std::string::npos);
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
  for (int lines = 1; lines < 15; ++lines) {
    for (const int selected : {-5, 0, 3, 1000}) {
      const auto shown = frame(stopped_job().snapshot, {}, {.selected = selected, .colours = false},
                               {lines, lines * 3});
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
