/// Tests the texts from which the page of `weft inspect serve` is made.

#include <gtest/gtest.h>

#include <limits>
#include <regex>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspect/page/curves.hpp"
#include "inspect/page/document.hpp"
#include "inspect/page/metrics.hpp"
#include "inspect/page/page_state.hpp"
#include "inspect/why/explain.hpp"
#include "tests/support/child_process.hpp"
#include "tests/unit/inspect/made_job.hpp"
#include "transport/published/published_memory.hpp"
#include "transport/published/row_memory.hpp"

namespace weft::page_test {
namespace {

using Json = nlohmann::json;
using testing::MadeJob;

MadeJob stopped_job() {
  MadeJob job(2, 2);
  job.pass("a");
  job.wait_for(1, "b");
  job.process(1).state = 'T';
  return job;
}

Json state_of(const Snapshot& job) { return Json::parse(page_state(job, explain(job, job))); }

TEST(PageState, HasActorsMeshAndWhy) {
  MadeJob job = stopped_job();
  job.snapshot.waits.push_back({.chip = 1,
                                .calls = {{.count = 3, .times_last = 1, .waited_ns = 500},
                                          {.count = 1, .times_last = 1, .waited_ns = 500}}});
  const Json state = state_of(job.snapshot);
  EXPECT_EQ(state.at("state"), "stopped");
  EXPECT_EQ(state.at("why").at("roots")[0].at("class"), "STOPPED");
  EXPECT_EQ(state.at("mesh").at("chips"), Json({0, 1, 2, 3}));
  ASSERT_EQ(state.at("actors").size(), 7U);
  EXPECT_EQ(state.at("actors")[2].at("state"), "stopped");
  const Json& chip = state.at("actors")[4];
  EXPECT_EQ(chip.at("name"), "chip 1");
  EXPECT_EQ(chip.at("came_last"), 0.5);
  EXPECT_DOUBLE_EQ(chip.at("waited_s").get<double>(), 1e-6);
  EXPECT_DOUBLE_EQ(chip.at("since").get<double>(), 59);
}

TEST(PageState, HasARowForASilentHost) {
  MadeJob job(2, 2);
  job.snapshot.hosts = {
      {.host = 0, .machine = "node0"},
      {.host = 1, .machine = "node7", .silence = "ssh: no route to host", .silent_s = 7}};
  const Json state = state_of(job.snapshot);
  ASSERT_EQ(state.at("actors").size(), 8U);
  const Json& host = state.at("actors")[7];
  EXPECT_EQ(host.at("name"), "host 1 (node7)");
  EXPECT_EQ(host.at("kind"), "host");
  EXPECT_EQ(host.at("state"), "silent");
  EXPECT_EQ(host.at("doing"), "ssh: no route to host");
  EXPECT_NEAR(host.at("since").get<double>(), static_cast<double>(job.snapshot.at_ns) / 1e9 - 7,
              0.01);
}

/// While a job doesn't change, the texts are equal, so the server sends nothing.
TEST(PageState, OfAJobThatDoesNotChangeIsTheSameText) {
  MadeJob job(2, 2);
  const std::string before = page_state(job.snapshot, {.verdict = Verdict::well, .idle_s = 1});
  job.snapshot.at_ns += MadeJob::kSecond;
  EXPECT_EQ(page_state(job.snapshot, {.verdict = Verdict::well, .idle_s = 2}), before);
}

TEST(PageState, TakesAnyText) {
  MadeJob job(1, 1);
  job.snapshot.header.name = "\xff</script>";
  job.snapshot.header.mesh_shape = {-3};
  job.chip(0).last_error = std::string("\x1b[2J\xc3", 5);
  const Json state = state_of(job.snapshot);
  EXPECT_TRUE(state.at("mesh").at("chips").empty());
  EXPECT_EQ(state.at("name"), "\xef\xbf\xbd</script>");
}

TEST(PageState, OfAnEndedJobHasNoTimesOfActors) {
  MadeJob job(1, 1);
  job.snapshot.live = false;
  job.snapshot.held = false;
  const Json state = state_of(job.snapshot);
  EXPECT_TRUE(state.at("over").get<bool>());
  EXPECT_TRUE(state.at("actors")[0].at("since").is_null());
}

TEST(Curves, AreTheColumnsWithNumbersOverTheStep) {
  const Json json = Json::parse(curves_json({},
                                            "step,loss,name,\"a,b\"\n"
                                            "1,0.5,x,7\n"
                                            "2,nan,y,\n"
                                            "3,0.25,z,9\n"
                                            "4,0.1"));
  EXPECT_EQ(json.at("x"), Json({1.0, 2.0, 3.0}));
  ASSERT_EQ(json.at("columns").size(), 2U);
  EXPECT_EQ(json.at("columns")[0].at("name"), "loss");
  EXPECT_EQ(json.at("columns")[0].at("values"), Json({0.5, nullptr, 0.25}));
  EXPECT_EQ(json.at("columns")[1].at("name"), "a,b");
}

TEST(Curves, OfManyReportsHaveAsManyPointsAsAreSeenAndTheLast) {
  std::string csv = "loss\n";
  for (int i = 0; i < 12345; ++i) csv += fmt::format("{}\n", i);
  const Json json = Json::parse(curves_json({}, csv));
  const Json& values = json.at("columns")[0].at("values");
  EXPECT_LE(values.size(), 1000U);
  EXPECT_GT(values.size(), 500U);
  EXPECT_EQ(values.back(), 12344.0);
  EXPECT_EQ(json.at("x").size(), values.size());
}

TEST(Curves, OfWhatIsNoCsvAreNone) {
  for (const char* text : {"", "\n", "loss", "loss\n", "loss\n\"a\"b\n1\n", "\"\n\n\n", "a\nb\n"}) {
    const Json json = Json::parse(curves_json({}, text));
    EXPECT_TRUE(json.at("columns").empty()) << text;
  }
}

Snapshot with_steps(std::int64_t step_ns) {
  EventRing ring{.kind = RingKind::chip, .worker = 0, .chip = 0};
  for (std::uint64_t i = 0; i < 5; ++i) {
    ring.events.push_back({.at_ns = 1000 + static_cast<std::int64_t>(i) * step_ns,
                           .kind = EventKind::step,
                           .number = 40 + i});
  }
  MadeJob job(1, 1);
  job.snapshot.rings.push_back(ring);
  return job.snapshot;
}

TEST(Curves, TheRateIsOfTheEvents) {
  const Json json = Json::parse(curves_json(with_steps(1'000'000), ""));
  EXPECT_EQ(json.at("rate").at("x"), Json({41, 42, 43, 44}));
  EXPECT_EQ(json.at("rate").at("values")[0], 1000.0);
}

/// Expects that each line is a comment, or a name with labels and a number.
void expect_grammar(const std::string& text) {
  const std::regex comment(R"(# (HELP|TYPE) [a-zA-Z_:][a-zA-Z0-9_:]* .+)");
  const std::string label = R"re([a-z_]+="([^"\\\n]|\\["\\n])*")re";
  const std::regex sample("[a-zA-Z_:][a-zA-Z0-9_:]*(\\{" + label + "(," + label +
                          ")*\\})? ([-+0-9.e]+|NaN|[-+]Inf)");
  std::istringstream in(text);
  std::string name;  // the name in the last TYPE line
  for (std::string line; std::getline(in, line);) {
    EXPECT_TRUE(std::regex_match(line, comment) || std::regex_match(line, sample)) << line;
    if (line.starts_with("# ")) {
      name = line.substr(7, line.find(' ', 7) - 7);
    } else {
      EXPECT_EQ(line.substr(0, line.find_first_of("{ ")), name) << line;
    }
  }
  EXPECT_TRUE(text.ends_with('\n'));
}

TEST(Metrics, HaveTheNumbersOfTheJob) {
  Snapshot job = with_steps(2'000'000);
  job.header.name = "a\"b\\c\nd";
  job.waits.push_back(
      {.chip = 0, .calls = {{.count = 9, .times_last = 4, .waited_ns = 1'500'000'000}}});
  const std::string text = metrics_text(job);
  expect_grammar(text);
  for (const char* line :
       {R"(name="a\"b\\c\nd")", "weft_job_hung 1", "weft_steps_total 4",
        "weft_step_duration_seconds{quantile=\"0.5\"} 0.002",
        "weft_chip_wait_seconds_total{chip=\"0\"} 1.5", "weft_last_arrivals_total{chip=\"0\"} 4",
        "weft_mailbox_messages{actor=\"worker 0\"} 0",
        "# TYPE weft_chip_wait_seconds_total counter"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

/// The text follows Prometheus's grammar, whatever names a loop gives its metrics.
TEST(Metrics, HaveWhatTheLoopReported) {
  Snapshot job = with_steps(2'000'000);
  job.metrics = {{"train_loss", 0.25},
                 {"a \"b\"\\\nc-d é\xff", 1e-30},
                 {"7", std::numeric_limits<double>::quiet_NaN()},
                 {"", -std::numeric_limits<double>::infinity()}};
  const std::string text = metrics_text(job);
  expect_grammar(text);
  for (const char* line :
       {"# TYPE weft_loss gauge\nweft_loss 0.25\n", "# TYPE weft_reported_value gauge\n",
        "# TYPE weft_steps_per_second gauge\n", "weft_reported_value{name=\"train_loss\"} 0.25\n",
        "weft_reported_value{name=\"a \\\"b\\\"\\\\\\nc-d é", "} 1e-30\n",
        "weft_reported_value{name=\"7\"} NaN\n", "weft_reported_value{name=\"\"} -Inf\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

TEST(Metrics, HaveWhatTheJobPublishesAndTakes) {
  Snapshot job = MadeJob(1, 1).snapshot;
  job.job = testing::unique_job();
  const PublishedMemory versions =
      PublishedMemory::create(job.job, "policy", lay_out({{.name = "w", .type = {}}}), 1);
  const RowMemory rows = RowMemory::create(
      job.job, "steps", {.fields = lay_out({{.name = "x", .type = {}}}, kRowAlignment)});
  const std::shared_ptr<void> removed(nullptr, [&](void*) {
    PublishedMemory::remove(job.job, "policy");
    RowMemory::remove(job.job, "steps");
  });
  versions.header().published = 7;
  versions.header().skipped = 2;
  versions.header().places[3].holders[1] = 5;
  rows.header().sent_rows = 100;
  rows.header().dropped_rows = 10;
  rows.header().lag = 3;
  rows.header().sender_waits = 4;
  const std::string text = metrics_text(job);
  expect_grammar(text);
  for (const char* line : {"weft_published_versions_total{name=\"policy\"} 7\n",
                           "weft_skipped_versions_total{name=\"policy\"} 2\n",
                           "weft_held_versions{name=\"policy\"} 2\n",
                           "weft_experience_rows_total{name=\"steps\"} 100\n",
                           "weft_experience_dropped_rows_total{name=\"steps\"} 10\n",
                           "weft_experience_lag_steps{name=\"steps\"} 3\n",
                           "weft_experience_writer_waits_total{name=\"steps\"} 4\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

TEST(Metrics, OfAJobWithoutEventsHaveTheRest) {
  const std::string text = metrics_text(MadeJob(1, 1).snapshot);
  expect_grammar(text);
  EXPECT_EQ(text.find("weft_loss"), std::string::npos);
  EXPECT_EQ(text.find("weft_step_duration"), std::string::npos);
  EXPECT_EQ(text.find("weft_chip_wait"), std::string::npos);
}

TEST(PageState, HasTheStackOfAnActorThatWasLookedAt) {
  MadeJob job = stopped_job();
  job.look_at(1, {{.function = "read_batch(int)", .file = "train.cpp", .line = 84}});
  const Why why = explain(job.snapshot, job.snapshot);
  const Json stack = Json::parse(stack_json(job.snapshot, why, "worker 1"));
  EXPECT_EQ(stack.at("frames")[0].at("function"), "read_batch(int)");
  EXPECT_EQ(stack.at("frames")[0].at("line"), 84);
  for (const char* other : {"worker 0", "nobody"}) {
    const Json none = Json::parse(stack_json(job.snapshot, why, other));
    EXPECT_TRUE(none.at("frames").empty());
    EXPECT_NE(none.at("why_not"), "");
  }
}

TEST(Document, AnExportedPageHasItsDate) {
  const std::string page =
      exported_page({.at_unix_s = 1'795'848'619, .state = "{}", .timeline = "{}", .curves = "{}"});
  EXPECT_NE(page.find("\"made_unix_s\": 1795848619,"), std::string::npos);
}

TEST(Document, AnExportedPageNeedsNothingElse) {
  const std::string page = exported_page({.at_s = 1.5,
                                          .state = R"x({"name": "</script><script>alert(1)"})x",
                                          .timeline = "{}",
                                          .curves = "{}"});
  EXPECT_FALSE(std::regex_search(page, std::regex(R"((src|href)\s*=)")));
  EXPECT_EQ(page.find("url("), std::string::npos);
  EXPECT_EQ(page.find("@import"), std::string::npos);
  EXPECT_EQ(page.find("alert(1)\"</script>"), std::string::npos);
  EXPECT_NE(page.find("\\u003c/script>\\u003cscript>alert(1)"), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

TEST(Document, AServedPageHasNoScriptOrStyleOfItsOwn) {
  const std::string page = served_page();
  EXPECT_EQ(page.find("<style"), std::string::npos);
  EXPECT_EQ(page.find("<script>"), std::string::npos);
  EXPECT_EQ(page.find(" style="), std::string::npos);
  EXPECT_FALSE(std::regex_search(page, std::regex(R"(\son[a-z]+=)")));
}

/// The script of the page never treats text of a job as markup.
TEST(Document, TheScriptMakesNoMarkupOfText) {
  for (const char* word :
       {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("}) {
    EXPECT_EQ(kPageJs.find(word), std::string_view::npos) << word;
  }
}

}  // namespace
}  // namespace weft::page_test
