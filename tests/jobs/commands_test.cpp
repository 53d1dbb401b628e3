/// Tests commands that are posted to running jobs. All loops must read a command in the same step,
/// even after a worker was lost and in jobs that continue from a checkpoint.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/jobs/run_loop.hpp"
#include "tests/support/temporary_folder.hpp"
#include "transport/job/post_socket.hpp"

namespace weft::commands_test {
namespace {

using testing::expect_ok;
using testing::TemporaryFolder;

/// The commands that a loop has read, with their steps, and the loop's weights at the end.
struct Story {
  Metrics commands = Metrics::array();
  std::vector<float> weights;
  std::uint64_t steps = 0;
};
void to_json(Metrics& json, const Story& story) {
  json = {{"commands", story.commands}, {"weights", story.weights}, {"steps", story.steps}};
}

/// Takes steps until the command "end". The command "rate" sets a variable of the loop, "decay"
/// sets a number in its state, "halve" halves that number, and "save" saves the state. The worker
/// config["victim"] kills itself once in each step in config["deaths"]. If there is a
/// config["script"], the loop obeys the commands in the script instead of posted commands.
class Training {
 public:
  Training(TrainContext& ctx, const Config& config) : ctx_(ctx), config_(config) {
    for (const Command& command : ctx.earlier_commands()) {
      note(command);
      if (command.name == "rate") rate_ = command.payload;
      if (command.name == "end") ends_ = true;
    }
  }

  Story run() {
    CheckpointManager manager;
    for (;;) {
      for (const Command& command : due()) obey(command, manager);
      if (ends_) break;
      die_if_told();
      weights_.assign(weights_ * (1 - rate_ * decay_.value()) + rate_);
      sync();
      ctx_.report({{"step", ctx_.step()}, {"rate", rate_}});
    }
    manager.wait();
    story_.weights = weights_.to_vector();
    story_.steps = ctx_.step();
    return story_;
  }

 private:
  void note(const Command& command) {
    story_.commands.push_back({command.name, command.payload, command.step});
  }
  void obey(const Command& command, CheckpointManager& manager) {
    note(command);
    if (command.name == "rate") rate_ = command.payload;
    if (command.name == "decay") decay_.set(command.payload.get<double>());
    if (command.name == "halve") decay_.set(decay_.value() / 2);
    if (command.name == "save") manager.save(state_, {.force = true});
    if (command.name == "end") ends_ = true;
  }
  std::vector<Command> due() {
    std::vector<Command> commands = ctx_.commands();
    if (!config_.contains("script")) return commands;
    commands.clear();
    for (const Metrics& line : config_["script"]) {
      if (line[2] != ctx_.step()) continue;
      commands.push_back({.name = line[0], .payload = line[1], .step = line[2]});
    }
    return commands;
  }
  void die_if_told() const {
    if (ctx_.world_rank() != config_.value("victim", -1)) return;
    for (const Metrics& step : config_["deaths"]) {
      const std::string file = fmt::format("{}/died-{}", ctx_.run_dir(), step.get<int>());
      if (step != ctx_.step() || std::filesystem::exists(file)) continue;
      std::ofstream(file) << "once";
      std::raise(SIGKILL);
    }
  }

  TrainContext& ctx_;
  const Config& config_;
  Parameter weights_ = make_parameter("weights", std::vector<float>{0.1F, 0.7F, -3, 4}, {4});
  HostNumber decay_{"decay", 0.125};
  const std::vector<Parameter> state_{weights_, decay_.state()[0]};
  double rate_ = 0.01;
  bool ends_ = false;
  Story story_;
};

Loop commanded{"test.commanded",
               [](TrainContext& ctx, const Config& config) { return Training(ctx, config).run(); }};

TrainerOptions options_in(const TemporaryFolder& folder, int workers,
                          const Config& config = Config::object()) {
  return {.loop_config = config,
          .scaling = {.num_workers = workers, .chips_per_worker = 2},
          .backend = {.timeout_s = 60},
          .run = {.name = "commands", .storage_path = folder.path()}};
}

std::uint64_t step_of(const Job& job) {
  const Metrics latest = job.latest();
  return latest.is_null() ? 0 : latest.at("step").get<std::uint64_t>();
}

/// Waits until the job has reported step `step`. The test itself sets no time limit.
void wait_step(const Job& job, std::uint64_t step) {
  while (step_of(job) < step) {
    ASSERT_FALSE(job.wait_for(std::chrono::milliseconds(1))) << job.result().error->message;
  }
}

/// Expects that all loops return the same story, and that an undisturbed run returns it too if its
/// config has the same commands for the same steps. Returns the story.
Metrics expect_one_story(const Result& result, int workers) {
  expect_ok(result);
  for (const Metrics& story : result.returned) EXPECT_EQ(story, result.returned[0]);
  const TemporaryFolder folder;
  const Result undisturbed =
      Trainer(commanded,
              options_in(folder, workers, {{"script", result.returned.at(0).at("commands")}}))
          .fit();
  EXPECT_EQ(expect_ok(undisturbed).returned.at(0), result.returned[0]);
  return result.returned[0];
}

TEST(Commands, AreReadInOneStepAndInOrderByAllLoops) {
  for (const int workers : {0, 1, 3}) {
    SCOPED_TRACE(workers);
    const TemporaryFolder folder;
    Job job = Trainer(commanded, options_in(folder, workers)).start();
    Metrics expected = Metrics::array();
    const auto post = [&](const std::string& name, const Metrics& payload) {
      const PostedCommand posted = job.post({.name = name, .payload = payload});
      expected.push_back({name, payload, posted.get()});
    };
    post("rate", 0.03);  // the loops may read this before their first step
    wait_step(job, 5);
    post("decay", 0.5);
    post("nothing", {{"a", {1, "x", nullptr}}});
    std::vector<PostedCommand> several;
    for (int i = 0; i < 20; ++i) several.push_back(job.post({.name = "several", .payload = i}));
    for (int i = 0; i < 20; ++i) {
      expected.push_back({"several", i, several[static_cast<std::size_t>(i)].get()});
    }
    post("end", nullptr);
    const Metrics story = expect_one_story(job.result(), workers);
    EXPECT_EQ(story.at("commands"), expected);
  }
}

TEST(Commands, AreReadAgainAfterLosses) {
  const TemporaryFolder folder;
  TrainerOptions options = options_in(folder, 3, {{"victim", 1}, {"deaths", {7, 8, 30, 31, 60}}});
  options.run.failure.max_failures = -1;
  Job job = Trainer(commanded, options).start();
  Metrics expected = Metrics::array();
  for (const std::uint64_t step : {2, 7, 9, 29, 31, 45, 59, 61}) {
    wait_step(job, step);
    const bool is_odd = step % 2 == 1;
    const Metrics payload = 1.0 / static_cast<double>(step + 1);
    const std::string name = is_odd ? "halve" : "rate";
    expected.push_back({name, payload, job.post({.name = name, .payload = payload}).get()});
  }
  expected.push_back({"end", nullptr, job.post({.name = "end"}).get()});
  const Metrics story = expect_one_story(job.result(), 3);
  EXPECT_EQ(story.at("commands"), expected);
}

TEST(Commands, OfOneVersionOfTheStateAreReadAgainFromACheckpoint) {
  const TemporaryFolder folder;
  TrainerOptions options = options_in(folder, 2, {{"victim", 1}, {"deaths", {40, 60}}});
  options.run.failure = {.max_failures = -1, .state_versions = 1};
  options.run.checkpoint.path = folder.path() + "/checkpoints";
  Job job = Trainer(commanded, options).start();
  wait_step(job, 10);
  Metrics expected = Metrics::array();
  const auto post = [&](const std::string& name, const Metrics& payload) {
    expected.push_back({name, payload, job.post({.name = name, .payload = payload}).get()});
  };
  post("rate", 0.05);
  post("halve", nullptr);
  post("save", nullptr);
  post("halve", nullptr);
  wait_step(job, 61);
  post("end", nullptr);
  const Metrics story = expect_one_story(job.result(), 2);
  EXPECT_EQ(story.at("commands"), expected);
}

TEST(Commands, AreKeptInCheckpoints) {
  const TemporaryFolder folder;
  const auto run = [&](const auto& posts) {
    TrainerOptions options = options_in(folder, 2);
    options.run.checkpoint.path = folder.path() + "/checkpoints";
    options.run.resume = "auto";
    Job job = Trainer(commanded, options).start();
    posts(job);
    return job.result();
  };
  std::uint64_t saved = 0;
  Metrics before = Metrics::array();
  const Result first = run([&](Job& job) {
    wait_step(job, 3);
    for (const char* name : {"halve", "save"}) {
      saved = job.post({.name = name}).get();
      before.push_back({name, nullptr, saved});
    }
    job.post({.name = "halve"}).get();  // after the save, so the second job doesn't know it
    job.post({.name = "end"}).get();
  });
  EXPECT_EQ(expect_ok(first).returned.at(0).at("commands").size(), 4U);
  const Result second = run([&](Job& job) {
    before.push_back({"rate", 0.07, job.post({.name = "rate", .payload = 0.07}).get()});
    before.push_back({"end", nullptr, job.post({.name = "end"}).get()});
  });
  EXPECT_EQ(expect_ok(second).returned.at(0).at("commands"), before);
  EXPECT_EQ(second.returned.at(1), second.returned.at(0));
  EXPECT_GE(second.returned.at(0).at("steps"), saved);
}

TEST(Commands, ArePostedByOtherProcesses) {
  for (const int workers : {0, 2}) {
    const TemporaryFolder folder;
    Job job = Trainer(commanded, options_in(folder, workers)).start();
    const std::string id = job.info().id;
    wait_step(job, 2);
    const pid_t child = ::fork();
    if (child == 0) {
      // This process posts a command and dies without waiting for its step.
      (void)post_command(id, "rate", 0.5, std::chrono::milliseconds(0));
      ::_exit(0);
    }
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const auto step = post_command(id, "end", nullptr, {});
    const Result result = job.result();
    const Metrics commands = expect_ok(result).returned.at(0).at("commands");
    ASSERT_EQ(commands.size(), 2U);
    EXPECT_EQ(commands[0][0], "rate");
    EXPECT_EQ(commands[1], Metrics({"end", nullptr, step.value()}));
    try {
      (void)post_command(id, "late", nullptr, {});
      ADD_FAILURE() << "the job has ended";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Errc::not_found) << e.what();
    }
  }
}

Loop reads_nothing{"test.reads_nothing", [](TrainContext& ctx) {
                     Parameter sum = make_parameter("sum", std::vector<float>{0}, {1});
                     while (!ctx.reached_preemption()) {
                       sum.assign(sum + 1.0);
                       sync();
                       ctx.report({{"step", ctx.step()}});
                     }
                   }};

TEST(Commands, ThatNoLoopReadsAreReported) {
  for (const int workers : {0, 2}) {
    const TemporaryFolder folder;
    Job job = Trainer(reads_nothing, options_in(folder, workers)).start();
    std::vector<PostedCommand> posted;
    for (int i = 0; i < kOpenCommandsMax; ++i) posted.push_back(job.post({.name = "unread"}));
    const Outcome<std::uint64_t> refused = job.post({.name = "one_more"}).outcome();
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code(), Errc::overloaded);
    EXPECT_STREQ(refused.error().what(),
                 "the command 'one_more' was refused: 64 commands are open, the maximum, and not "
                 "all loops have read the first of them, 'unread': a loop reads its commands by "
                 "ctx.commands()");
    EXPECT_FALSE(posted[0].wait_for(std::chrono::nanoseconds(0)));
    wait_step(job, 200);
    job.stop();
    const Outcome<std::uint64_t> unread = posted[0].outcome();
    ASSERT_FALSE(unread.ok());
    EXPECT_EQ(unread.error().code(), Errc::cancelled);
    EXPECT_NE(std::string(unread.error().what()).find("no loop has read the command 'unread'"),
              std::string::npos)
        << unread.error().what();
    const Result result = job.result();
    std::ifstream file(result.path + "/trainer.log");
    const std::string log(std::istreambuf_iterator<char>(file), {});
    EXPECT_NE(log.find("the command 'unread' waits since step"), std::string::npos) << log;
    EXPECT_NE(log.find("the job has ended, and no loop has read the command 'unread'"),
              std::string::npos)
        << log;
    const Outcome<std::uint64_t> late = job.post({.name = "late"}).outcome();
    EXPECT_STREQ(late.error().what(), "the command 'late' was refused: the job has ended");
  }
}

Loop one_reads{"test.one_reads", [](TrainContext& ctx) {
                 Parameter sum = make_parameter("sum", std::vector<float>{0}, {1});
                 for (;;) {
                   if (ctx.world_rank() == 1) (void)ctx.commands();
                   sum.assign(sum + 1.0);
                   sync();
                   ctx.report({{"step", ctx.step()}});
                 }
               }};

TEST(Commands, ThatOnlyOneLoopReadsFailTheJob) {
  const TemporaryFolder folder;
  Job job = Trainer(one_reads, options_in(folder, 2)).start();
  const PostedCommand posted = job.post({.name = "rate", .payload = 1});
  const Result result = job.result();
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->code, Errc::uneven_loops);
  EXPECT_NE(result.error->message.find("worker 1 has read the command 'rate' in step"),
            std::string::npos)
      << result.error->message;
  EXPECT_NE(std::string(posted.outcome().error().what()).find("only the loops of workers 1 have"),
            std::string::npos)
      << posted.outcome().error().what();
}

/// Stops taking steps at the command "pause" and continues at "continue".
Loop pauses{"test.pauses", [](TrainContext& ctx) {
              Parameter sum = make_parameter("sum", std::vector<float>{0}, {1});
              bool is_paused = false;
              std::vector<std::string> names;
              const auto obey = [&](const std::vector<Command>& commands) {
                for (const Command& command : commands) {
                  names.push_back(fmt::format("{} {}", command.name, command.step));
                  if (command.name == "pause") is_paused = true;
                  if (command.name == "continue") is_paused = false;
                }
              };
              while (!ctx.reached_preemption() && names.size() < 6) {
                obey(ctx.commands());
                while (is_paused && !ctx.reached_preemption()) obey(ctx.wait_commands());
                sum.assign(sum + 1.0);
                sync();
                ctx.report({{"step", ctx.step()}});
              }
              return names;
            }};

TEST(Commands, PauseAndContinue) {
  for (const int workers : {0, 3}) {
    const TemporaryFolder folder;
    TrainerOptions options = options_in(folder, workers);
    options.run.failure = {.max_failures = workers > 0 ? 1 : 0, .hang_timeout_s = 1};
    Job job = Trainer(pauses, options).start();
    std::vector<std::string> expected;
    for (int round = 0; round < 2; ++round) {
      const std::uint64_t paused = job.post({.name = "pause"}).get();
      // A loop that waits for commands doesn't count as hung.
      if (round == 0) {
        EXPECT_FALSE(job.wait_for(std::chrono::milliseconds(2500)));
      }
      EXPECT_EQ(job.post({.name = "rate", .payload = 0.1}).get(), paused);
      EXPECT_EQ(job.post({.name = "continue"}).get(), paused);
      for (const char* name : {"pause", "rate", "continue"}) {
        expected.push_back(fmt::format("{} {}", name, paused));
      }
    }
    const Result result = job.result();
    EXPECT_TRUE(expect_ok(result).failures.empty());
    for (const Metrics& names : result.returned) EXPECT_EQ(names, Metrics(expected));
  }
}

TEST(Commands, APausedJobCanBeStopped) {
  for (const int workers : {0, 2}) {
    const TemporaryFolder folder;
    Job job = Trainer(pauses, options_in(folder, workers)).start();
    (void)job.post({.name = "pause"}).get();
    job.stop();
    const Result result = job.result();
    EXPECT_EQ(result.ended_by, EndedBy::stop);
    EXPECT_NE(result.error->message.find("all loops ended at step"), std::string::npos)
        << result.error->message;
  }
}

std::string refusal(Job& job, const Command& command) {
  try {
    (void)job.post(command);
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Errc::invalid_argument);
    return e.what();
  }
}

/// Reads commands in every step until "end".
Loop reads_all{"test.reads_all", [](TrainContext& ctx) {
                 Parameter sum = make_parameter("sum", std::vector<float>{0}, {1});
                 for (bool ends = false; !ends;) {
                   for (const Command& command : ctx.commands()) ends = command.name == "end";
                   sum.assign(sum + 1.0);
                   sync();
                 }
               }};

TEST(Commands, OfBadNamesAndSizesAreRefused) {
  const TemporaryFolder folder;
  Job job = Trainer(reads_all, options_in(folder, 0)).start();
  const std::string expected =
      ": expected 1 to 64 letters, digits, '_', '-' and '.', such as \"learning_rate\"";
  EXPECT_EQ(refusal(job, {}), "command.name = \"\"" + expected);
  EXPECT_EQ(refusal(job, {.name = "two words"}), "command.name = \"two words\"" + expected);
  EXPECT_NE(refusal(job, {.name = std::string(65, 'x')}), "");
  EXPECT_EQ(refusal(job, {.name = std::string(64, 'x')}), "");
  EXPECT_EQ(refusal(job, {.name = "big", .payload = std::string(kCommandPayloadMax, 'x')}),
            "command.payload of 'big' has 65538 bytes as JSON: expected at most 65536; write large "
            "values to a file and post its path");
  Job none;
  EXPECT_NE(refusal(none, {.name = "x"}).find("on an empty Job"), std::string::npos);
  // A job keeps at most 4 MiB of commands.
  Outcome<std::uint64_t> last(std::uint64_t{0});
  const std::string large(kCommandPayloadMax - 2, 'x');
  for (int i = 0; i < 70 && last.ok(); ++i) {
    last = job.post({.name = "large", .payload = large}).outcome();
  }
  ASSERT_FALSE(last.ok());
  EXPECT_EQ(last.error().code(), Errc::overloaded);
  EXPECT_NE(std::string(last.error().what()).find("it keeps at most 4194304"), std::string::npos)
      << last.error().what();
  EXPECT_TRUE(job.post({.name = "end"}).outcome().ok());
  expect_ok(job.result());
}

}  // namespace
}  // namespace weft::commands_test
