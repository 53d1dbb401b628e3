/// Runs the loops of loader_app undisturbed, with a worker that is killed, and resumed from a
/// checkpoint. WEFT_LOADER_KILLS sets at how many batches of each loop the worker is killed; the
/// default is 5.

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "tests/support/app_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::loader_test {
namespace {

using testing::AppProcess;
using Json = nlohmann::json;

/// A loop of loader_app and how often its body runs.
struct Case {
  std::string loop;
  int bodies;  ///< how often an undisturbed job runs the loop's body
};

std::ostream& operator<<(std::ostream& out, const Case& loop) { return out << loop.loop; }

class LoaderLoops : public ::testing::TestWithParam<Case> {
 protected:
  Json run(std::vector<std::string> arguments, int expected_exit = 0) const {
    std::vector<std::string> words{LOADER_APP,      "--json",    "{json}",      "--loop",
                                   GetParam().loop, "--storage", folder_.path()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    AppProcess app(words);
    const std::string job = app.job();
    EXPECT_EQ(app.wait(), expected_exit) << app.output();
    testing::expect_nothing_left(job);
    return app.result();
  }
  /// Returns the runs of the body in which to kill: evenly spread, and never the first run.
  std::vector<int> places() const {
    const char* given = std::getenv("WEFT_LOADER_KILLS");
    const int count = std::min(given != nullptr ? std::atoi(given) : 5, GetParam().bodies - 1);
    std::vector<int> places;
    for (int i = 0; i < count; ++i) places.push_back(2 + i * (GetParam().bodies - 1) / count);
    return places;
  }
  testing::TemporaryFolder folder_;
};

TEST_P(LoaderLoops, TakeTheBatchesThatTheyLookLike) {
  const Json result = run({});
  EXPECT_EQ(result.at("metrics").at("count"), GetParam().bodies);
}

TEST_P(LoaderLoops, EndAlikeAfterAKill) {
  const Json undisturbed = run({});
  for (const int at : places()) {
    SCOPED_TRACE(at);
    const Json result = run({"--kill-at", std::to_string(at)});
    EXPECT_EQ(result.at("failures"), 1);
    EXPECT_EQ(result.at("history"), undisturbed.at("history"));
  }
}

TEST_P(LoaderLoops, EndAlikeWhenResumed) {
  const Json undisturbed = run({});
  for (const int at : places()) {
    SCOPED_TRACE(at);
    const std::string saved = folder_.path() + "/saved-" + std::to_string(at);
    run({"--stop-at", std::to_string(at), "--save-every", "1", "--checkpoints", saved}, 1);
    const Json result = run({"--save-every", "1000", "--checkpoints", saved, "--resume", "auto"});
    EXPECT_EQ(result.at("metrics"), undisturbed.at("metrics"));
  }
}

const Case kCases[] = {
    {"epochs", 18},
    {"epochs_with_a_number_of_the_step", 18},
    {"counted_epochs", 18},
    {"limited_by_the_index", 12},
    {"limited_by_first", 12},
    {"by_step", 10},
    {"sync_between_epochs", 18},
    {"epochs_that_set_a_number", 18},
    {"phases", 14},
    {"counted_phases", 12},
    {"nested_evaluation", 12},
    {"evaluation_after_each_epoch", 18},
    {"evaluation_that_ends_steps", 18},
    {"two_side_by_side", 12},
    {"two_of_unequal_length", 8},
    {"counted_epochs_with_a_rate", 18},
    {"one_in_a_cycle", 12},
    {"three_in_cycles_by_step", 18},
    {"two_in_cycles_by_step", 18},
    {"longer_one_in_a_cycle", 18},
    {"one_in_a_cycle_from_a_body_on", 18},
    {"step_ended_in_the_body", 18},
    {"two_batches_a_step", 18},
    {"packed_epochs", 12},
    {"packed_stream", 12},
};
INSTANTIATE_TEST_SUITE_P(All, LoaderLoops, ::testing::ValuesIn(kCases),
                         [](const auto& each) { return each.param.loop; });

/// A loop that is right only if no worker is killed, and the words of the error that it gets
/// otherwise.
struct Counted {
  std::string loop;
  int bodies;
  std::vector<std::string> words;
};

std::ostream& operator<<(std::ostream& out, const Counted& counted) { return out << counted.loop; }

class LoaderCounters : public ::testing::TestWithParam<Counted> {
 protected:
  /// Returns the result and the output of the job.
  std::pair<Json, std::string> run(int kill_at) const {
    std::vector<std::string> words{LOADER_APP,      "--json",    "{json}",      "--loop",
                                   GetParam().loop, "--storage", folder_.path()};
    if (kill_at > 0) words.insert(words.end(), {"--kill-at", std::to_string(kill_at)});
    AppProcess app(words);
    app.wait();
    return {app.result(), app.output()};
  }
  testing::TemporaryFolder folder_;
};

TEST_P(LoaderCounters, AreRightOrRefused) {
  const Json undisturbed = run(0).first;
  ASSERT_EQ(undisturbed.at("metrics").at("count"), GetParam().bodies);
  int refused = 0;
  for (int at = 2; at <= GetParam().bodies; ++at) {
    const Json result = run(at).first;
    if (result.at("ok")) {
      EXPECT_EQ(result.at("history"), undisturbed.at("history")) << at;
      continue;
    }
    ++refused;
    const std::string message = result.at("message");
    for (const std::string& word : GetParam().words) {
      EXPECT_NE(message.find(word), std::string::npos) << word << " in " << message;
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, GetParam().bodies - 1);
}

const Counted kCounted[] = {
    // These loops count batches with a variable that begins at 0 again after a kill. If the kill is
    // at the end of a pass over the data, this is no mistake.
    {"limited_by_a_counter",
     12,
     {"loader_app.cpp:", "was continued at its batch", "batch.index()"}},
    {"three_in_cycles_by_a_counter",
     18,
     {"loader_app.cpp:", "own counter has started at 0 again", "ctx.step()"}},
    // These loops change state between passes over the data.
    {"counted_epochs_that_set_a_number",
     18,
     {"rate is changed at loader_app.cpp:", "made twice", "epoch() of the loader"}},
    {"counted_epochs_that_assign",
     18,
     {"rate is changed at loader_app.cpp:", "made twice", "epoch() of the loader"}},
};
INSTANTIATE_TEST_SUITE_P(All, LoaderCounters, ::testing::ValuesIn(kCounted),
                         [](const auto& each) { return each.param.loop; });

class LoaderStateBetweenPasses : public LoaderCounters {};

TEST_P(LoaderStateBetweenPasses, IsWarnedOfOnceBeforeAnythingIsLost) {
  const std::string output = run(0).second;
  const std::size_t first = output.find("rate is changed at ");
  ASSERT_NE(first, std::string::npos) << output;
  EXPECT_EQ(output.find("rate is changed at ", first + 1), std::string::npos) << output;
}

INSTANTIATE_TEST_SUITE_P(All, LoaderStateBetweenPasses,
                         ::testing::ValuesIn(std::begin(kCounted) + 2, std::end(kCounted)),
                         [](const auto& each) { return each.param.loop; });

}  // namespace
}  // namespace weft::loader_test
