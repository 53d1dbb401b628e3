/// Tests that commands survive kills: workers are killed at random instants while commands are
/// posted by other processes, and whole jobs are killed and continued. The commands and the bits of
/// the result must equal those of an undisturbed run with the same commands in the same steps.
/// WEFT_KILLS sets the number of kills; the default is 12.

#include <gtest/gtest.h>
#include <sched.h>

#include <csignal>
#include <optional>
#include <random>

#include "tests/fault/killer.hpp"
#include "tests/fault/watched_run.hpp"
#include "tests/support/temporary_folder.hpp"
#include "transport/job/post_socket.hpp"

namespace weft::commands_test {
namespace {

using testing::AppProcess;
using testing::expect_nothing_left;
using testing::TemporaryFolder;
using testing::wait_until;
using testing::WatchedRun;
using Json = nlohmann::json;

constexpr int kWorkers = 3;

std::vector<std::string> app_words(const TemporaryFolder& folder,
                                   const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{COMMAND_APP, "--json", "{json}", "--storage", folder.path()};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Expects that all loops have returned the same as those of an undisturbed run that reads the same
/// commands in the same steps. Returns the commands.
Json expect_undisturbed(const AppProcess& app, const TemporaryFolder& folder) {
  const Json returned = app.result().at("returned");
  for (const Json& each : returned) EXPECT_EQ(each, returned[0]);
  AppProcess undisturbed(app_words(folder, {"--script", app.json_path()}));
  EXPECT_EQ(undisturbed.wait(), 0) << undisturbed.output();
  EXPECT_EQ(undisturbed.result().at("returned").at(0), returned.at(0));
  return returned.at(0).at("commands");
}

TEST(Commands, AndKillsAtRandomInstantsChangeNoBit) {
  constexpr int kPosts = 24;
  int kills = 0;
  for (std::uint64_t seed = 1; kills < testing::kill_count(12) && !::testing::Test::HasFailure();
       ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const TemporaryFolder folder;
    WatchedRun run(app_words(folder), kWorkers);
    const std::string job = run.app().job().substr(0, 32);
    Json expected = Json::array();
    for (int i = 0; i < kPosts; ++i) {
      const Json payload = i % 2 == 0 ? Json(0.001 * (i + 1)) : Json();
      const char* const name = i % 2 == 0 ? "rate" : "halve";
      const bool kills_first = random() % 3 == 0;
      const auto kill_one = [&] {
        for (std::uint64_t turns = random() % 200; turns > 0; --turns) ::sched_yield();
        kills += run.kill(static_cast<int>(random() % kWorkers)) ? 1 : 0;
      };
      if (kills_first) kill_one();
      const auto step = post_command(job, name, payload, {});
      expected.push_back({name, payload, step.value()});
      if (!kills_first && random() % 4 == 0) kill_one();
    }
    expected.push_back({"end", nullptr, post_command(job, "end", nullptr, {}).value()});
    ASSERT_EQ(run.app().wait(), 0) << run.app().output();
    expect_nothing_left(job);
    EXPECT_EQ(expect_undisturbed(run.app(), folder), expected);
  }
}

TEST(Commands, OfAPosterThatIsKilledAreStillRead) {
  const TemporaryFolder folder;
  WatchedRun run(app_words(folder), kWorkers);
  const std::string job = run.app().job().substr(0, 32);
  wait_until([&] { return run.step() > 0; });
  AppProcess poster({WEFT, "post", "--timeout", "0", job, "rate", "0.25"});
  ASSERT_EQ(poster.wait(), 3) << poster.output();
  AppProcess last({WEFT, "post", "--json", job.substr(0, 20), "end"});
  ASSERT_EQ(last.wait(), 0) << last.output();
  ASSERT_EQ(run.app().wait(), 0) << run.app().output();
  const Json commands = expect_undisturbed(run.app(), folder);
  ASSERT_EQ(commands.size(), 2U);
  EXPECT_EQ(commands[0][0], "rate");
  const Json told = Json::parse(last.output());
  EXPECT_EQ(told, Json({{"job", job}, {"name", "end"}, {"step", commands[1][2]}}));
  AppProcess late({WEFT, "post", job, "late"});
  EXPECT_EQ(late.wait(), 2);
}

TEST(Commands, OfAJobThatIsKilledAreKnownToTheNextOne) {
  const TemporaryFolder folder;
  const std::string checkpoints = folder.path() + "/checkpoints";
  Json expected = Json::array();
  {
    WatchedRun run(app_words(folder, {"--checkpoints", checkpoints}), kWorkers);
    const std::string job = run.app().job().substr(0, 32);
    const auto post = [&](const char* name, const Json& payload) {
      return post_command(job, name, payload, {}).value();
    };
    expected.push_back({"rate", 0.125, post("rate", 0.125)});
    expected.push_back({"halve", nullptr, post("halve", nullptr)});
    expected.push_back({"save", nullptr, post("save", nullptr)});
    post("halve", nullptr);  // lost, as are the steps since the save
    ASSERT_EQ(::kill(run.app().pid(), SIGKILL), 0);
    run.app().wait();
  }
  WatchedRun run(app_words(folder, {"--checkpoints", checkpoints}), kWorkers);
  const std::string job = run.app().job().substr(0, 32);
  expected.push_back({"rate", 0.5, post_command(job, "rate", 0.5, {}).value()});
  run.kill(1);
  expected.push_back({"end", nullptr, post_command(job, "end", nullptr, {}).value()});
  ASSERT_EQ(run.app().wait(), 0) << run.app().output();
  EXPECT_EQ(expect_undisturbed(run.app(), folder), expected);
}

TEST(Commands, OfADeadJobAreRescued) {
  const TemporaryFolder folder;
  const std::string checkpoints = folder.path() + "/checkpoints";
  Json expected = Json::array();
  std::string dead;
  {  // the test has the job's memory open in this block
    // The memory is kept, because another test's job could remove it before the rescue.
    WatchedRun run(app_words(folder, {"--checkpoints", checkpoints, "--keep-for-rescue", "60"}),
                   kWorkers);
    const std::string job = dead = run.app().job().substr(0, 32);
    for (int i = 0; i < 70; ++i) {  // more commands than the chips' memory can list
      const char* const name = i % 2 == 0 ? "rate" : "halve";
      const Json payload = i % 2 == 0 ? Json(0.01 * (i + 1)) : Json();
      expected.push_back({name, payload, post_command(job, name, payload, {}).value()});
    }
    const std::uint64_t last = expected.back()[2];
    wait_until([&] { return run.step() > last + 4; });
    ASSERT_EQ(::kill(run.app().pid(), SIGKILL), 0);
    run.app().wait();
    wait_until([&] { return testing::processes_of(job).empty(); });
  }
  AppProcess rescue({WEFT, "rescue", dead});
  ASSERT_EQ(rescue.wait(), 0) << rescue.output();
  WatchedRun run(app_words(folder, {"--checkpoints", checkpoints}), kWorkers);
  const std::string job = run.app().job().substr(0, 32);
  expected.push_back({"end", nullptr, post_command(job, "end", nullptr, {}).value()});
  ASSERT_EQ(run.app().wait(), 0) << run.app().output();
  EXPECT_EQ(expect_undisturbed(run.app(), folder), expected);
}

TEST(WeftPost, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  WatchedRun run(app_words(folder), kWorkers);
  const std::string job = run.app().job().substr(0, 32);
  const auto post = [&](const std::vector<std::string>& words, int code) {
    std::vector<std::string> all{"/bin/sh", "-c", "exec \"$0\" post \"$@\" 2>&1", WEFT};
    all.insert(all.end(), words.begin(), words.end());
    AppProcess app(all);
    EXPECT_EQ(app.wait(), code) << app.output();
    return app.output();
  };
  EXPECT_EQ(post({job, "rate", "{"}, 1),
            "payload = {: expected JSON, such as 0.01, '\"text\"' or '{\"rate\": 0.01}'\n");
  EXPECT_EQ(post({job, "two words"}, 1),
            "command.name = \"two words\": expected 1 to 64 letters, digits, '_', '-' and '.', "
            "such as \"learning_rate\"\n");
  EXPECT_EQ(post({"--json", job, "two words"}, 1),
            "{\n \"error\": \"invalid_argument\",\n \"message\": \"command.name = \\\"two "
            "words\\\": expected 1 to 64 letters, digits, '_', '-' and '.', such as "
            "\\\"learning_rate\\\"\"\n}\n");
  EXPECT_EQ(post({"no-such-job", "rate"}, 2),
            "there is no job \"no-such-job\": `weft inspect` lists the jobs\n");
  EXPECT_NE(post({job, "end"}, 0).find("all loops have read 'end' in step "), std::string::npos);
  EXPECT_EQ(run.app().wait(), 0) << run.app().output();
}

}  // namespace
}  // namespace weft::commands_test
