/// Tests CommandDesk together with the LoopCommands of its loops. Messages between them are
/// delivered in random interleavings, loops take steps when they may, and generations end at random
/// times.

#include "actors/commands/command_desk.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace weft::command_desk_test {
namespace {

/// A desk and its loops. Each direction of a link is a queue of messages.
class World {
 public:
  World(std::uint64_t seed, int workers, int reads_every, bool waits_at_ten)
      : random_(seed),
        reads_every_(reads_every),
        waits_at_ten_(waits_at_ten),
        loops_(static_cast<std::size_t>(workers)),
        desk_(workers, {}) {
    begin(0);
  }

  void post(const std::string& name) { carry_out(desk_.post({.post = ++posts_, .name = name})); }

  /// Delivers a random message or moves a random loop on. Returns false if neither is possible.
  bool turn() {
    std::vector<std::function<void()>> things;
    for (Loop& loop : loops_) {
      if (!loop.to.empty()) {
        things.emplace_back([&loop] {
          const auto message = std::move(loop.to.front());
          loop.to.pop_front();
          message();
        });
      }
      if (!loop.from.empty()) {
        things.emplace_back([&loop] {
          const auto message = std::move(loop.from.front());
          loop.from.pop_front();
          message();
        });
      }
      if (loop.step < kSteps) things.emplace_back([this, &loop] { move(loop); });
    }
    if (things.empty()) return false;
    things[random_() % things.size()]();
    return true;
  }

  /// Begins a new generation, as after the loss of a worker: all loops continue from the last step
  /// that all of them have committed.
  void lose_one() {
    desk_.unwind();
    std::uint64_t first = kSteps;
    for (const Loop& loop : loops_) {
      first = std::min(first, loop.committed);
      begun_ = std::max(begun_, loop.step);
    }
    begin(first);
  }

  /// Expects that all loops have read the same commands, and returns the names and steps of these.
  std::vector<std::string> story() const {
    for (const Loop& loop : loops_) {
      EXPECT_EQ(loop.error, "");
      EXPECT_EQ(loop.read, loops_[0].read);
    }
    return loops_[0].read;
  }
  /// Returns the answers by the number of the post.
  const std::map<std::uint64_t, std::string>& answers() const { return answers_; }
  void end() { carry_out(desk_.end({})); }
  std::uint64_t posts() const { return posts_; }
  std::uint64_t random(std::uint64_t limit) { return random_() % limit; }
  static constexpr std::uint64_t kSteps = 40;

 private:
  struct Loop {
    LoopCommands commands;
    std::uint64_t step = 0;
    std::uint64_t committed = 0;  // the last step whose state is kept
    bool has_read = false;        // the loop has read commands in this step
    std::deque<std::function<void()>> to, from;
    std::vector<std::string> read;
    std::map<std::uint64_t, std::vector<CommandMark>>
        versions;  // the commands that each step's state includes
    std::string error;
  };

  int number(const Loop& loop) const { return static_cast<int>(&loop - loops_.data()); }

  void begin(std::uint64_t step) {
    ++generation_;
    carry_out(desk_.begin_generation(generation_, step,
                                     generation_ > 1 ? std::optional(begun_) : std::nullopt));
    for (Loop& loop : loops_) {
      loop.to.clear();
      loop.from.clear();
      loop.commands.start(step, desk_.commands());
      const std::vector<CommandMark> known = loop.versions[step];
      loop.commands.begin_with(known);
      loop.step = loop.committed = step;
      loop.has_read = false;
      loop.read.clear();
      for (const StoredCommand& earlier : loop.commands.earlier()) note(loop, earlier);
      tell(loop,
           [=, this, &loop] { carry_out(desk_.read(number(loop), generation_, known, true)); });
    }
  }

  void note(Loop& loop, const StoredCommand& command) {
    loop.read.push_back(fmt::format("{} {}", command.name, command.step));
  }

  template <typename Message>
  void tell(Loop& loop, const Message& message) {
    loop.from.emplace_back(message);
  }

  void move(Loop& loop) {
    const std::uint64_t step = loop.step;
    const bool reads = step % static_cast<std::uint64_t>(reads_every_) == 0;
    const bool waits = waits_at_ten_ && step == 10 && loop.has_read;
    if (reads && (!loop.has_read || waits)) {
      const auto read = loop.commands.read();
      loop.has_read = true;
      std::vector<CommandMark> marks;
      bool has_come = false;
      for (const StoredCommand& command : read) {
        note(loop, command);
        marks.push_back({command.number, command.step});
        has_come = has_come || command.name.starts_with("wake");
      }
      if (!marks.empty()) {
        tell(loop,
             [=, this, &loop] { carry_out(desk_.read(number(loop), generation_, marks, false)); });
      }
      if (waits && !has_come && !woken(loop)) {
        const std::uint64_t last =
            loop.commands.marks().empty() ? 0 : loop.commands.marks().back().number;
        if (loop.from.size() < 4) {
          tell(loop,
               [=, this, &loop] { carry_out(desk_.waits(number(loop), generation_, step, last)); });
        }
        return;
      }
      if (waits_at_ten_ && step == 10 && !has_come && !woken(loop)) return;
    }
    loop.versions[step] = loop.commands.marks();
    loop.committed = step;
    if (!loop.commands.may_begin(step + 1)) return;
    if (const auto missed = loop.commands.begun(step + 1)) loop.error = *missed;
    ++loop.step;
    loop.has_read = false;
  }
  static bool woken(const Loop& loop) {
    return std::ranges::any_of(loop.read,
                               [](const auto& line) { return line.starts_with("wake"); });
  }

  void carry_out(const DeskActions& actions) {
    for (Loop& loop : loops_) {
      if (actions.holds) {
        loop.to.emplace_back([this, &loop] {
          const std::uint64_t step = loop.commands.hold();
          tell(loop, [=, this, &loop] { carry_out(desk_.held(number(loop), generation_, step)); });
        });
      }
      if (actions.let_go) {
        loop.to.emplace_back([&loop, list = *actions.let_go] { loop.commands.let_go(list); });
      }
      for (const ReadElsewhere& read : actions.read) {
        if (read.worker == number(loop)) continue;
        loop.to.emplace_back([&loop, read] {
          if (const auto missed = loop.commands.read_elsewhere(read)) loop.error = *missed;
        });
      }
    }
    EXPECT_FALSE(actions.uneven) << actions.uneven->message;
    for (const CommandAnswer& answer : actions.answers) {
      const auto [at, is_new] = answers_.emplace(
          answer.post, answer.outcome.ok() ? fmt::format("{}", answer.outcome.value())
                                           : std::string(answer.outcome.error().what()));
      EXPECT_TRUE(is_new) << at->second;
    }
  }

  std::mt19937_64 random_;
  const int reads_every_;
  const bool waits_at_ten_;
  std::uint64_t posts_ = 0;
  std::uint64_t generation_ = 0;
  std::uint64_t begun_ = 0;
  std::vector<Loop> loops_;
  CommandDesk desk_;
  std::map<std::uint64_t, std::string> answers_;
};

TEST(CommandDesk, AllLoopsReadTheSameInAllInterleavings) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    const bool waits = seed % 3 == 0;
    World world(seed, 1 + static_cast<int>(seed % 4), seed % 2 == 0 || waits ? 1 : 5, waits);
    std::map<std::uint64_t, std::string> names;  // the command's name, by post
    while (world.turn()) {
      if (world.random(30) == 0 && world.posts() < 30) {
        const std::string name =
            fmt::format("{}{}", world.random(4) == 0 ? "wake" : "x", world.posts() + 1);
        names[world.posts() + 1] = name;
        world.post(name);
      }
      if (world.random(400) == 0) world.lose_one();
      if (waits && world.posts() >= 30 && world.random(50) == 0 && world.posts() < 60) {
        names[world.posts() + 1] = fmt::format("wake{}", world.posts() + 1);
        world.post(names[world.posts() + 1]);
      }
      if (::testing::Test::HasFailure()) return;
    }
    world.end();
    const std::vector<std::string> story = world.story();
    // The loops read commands in order and once, each in the step that its poster was told.
    std::vector<std::string> told;
    for (const auto& [post, answer] : world.answers()) {
      if (!answer.empty() && std::isdigit(static_cast<unsigned char>(answer[0]))) {
        told.push_back(names[post] + " " + answer);
      }
    }
    EXPECT_EQ(world.answers().size(), world.posts());
    EXPECT_EQ(story, told);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(CommandDesk, GivesCommandsThatComeBeforeTheLoopsTheirFirstStep) {
  CommandDesk desk(2, {});
  EXPECT_FALSE(desk.post({.post = 1, .name = "early"}).holds);
  const DeskActions begun = desk.begin_generation(1, 100, {});
  ASSERT_EQ(begun.scheduled.size(), 1U);
  EXPECT_EQ(begun.scheduled[0].step, 100U);
  EXPECT_EQ(desk.commands(), begun.scheduled);
}

TEST(CommandDesk, GivesCommandsThatComeDuringARecoveryAStepThatNoLoopHadBegun) {
  CommandDesk desk(2, {});
  (void)desk.begin_generation(1, 0, {});
  desk.unwind();
  EXPECT_FALSE(desk.post({.post = 1, .name = "late"}).holds);
  EXPECT_EQ(desk.begin_generation(2, 7, 9).scheduled.at(0).step, 10U);
}

TEST(CommandDesk, GoesOnWithTheCommandsOfACheckpoint) {
  CommandDesk desk(1, {{.number = 3, .step = 5, .name = "known", .payload = "1", .is_read = true},
                       {.number = 4, .step = 9, .name = "open", .payload = "2"}});
  (void)desk.begin_generation(1, 8, {});
  ASSERT_EQ(desk.commands().size(), 2U);
  EXPECT_EQ(desk.commands()[1].step, 9U);
  const DeskActions held = [&] {
    EXPECT_TRUE(desk.post({.post = 1, .name = "new"}).holds);
    return desk.held(0, 1, 9);
  }();
  ASSERT_EQ(held.scheduled.size(), 1U);
  EXPECT_EQ(held.scheduled[0].number, 5U);
  const CommandMark marks[] = {{4, 9}, {5, 9}};
  const DeskActions read = desk.read(0, 1, marks, false);
  ASSERT_EQ(read.answers.size(), 1U);  // nobody waits for the command from the checkpoint
  EXPECT_EQ(read.answers[0].outcome.value(), 9U);
}

TEST(CommandDesk, KeepsEarlyPostsWhenTheJobBeginsWithAnotherCheckpoint) {
  CommandDesk desk(1, {{.number = 1, .step = 5, .name = "a", .payload = "1", .is_read = true},
                       {.number = 2, .step = 9, .name = "b", .payload = "2", .is_read = true}});
  (void)desk.post({.post = 1, .name = "new"});
  desk.begin_with({{.number = 1, .step = 5, .name = "a", .payload = "1", .is_read = true}});
  (void)desk.begin_generation(1, 8, {});
  ASSERT_EQ(desk.commands().size(), 2U);
  EXPECT_EQ(desk.commands()[1].name, "new");
  EXPECT_EQ(desk.commands()[1].number, 2U);
}

TEST(CommandDesk, RefusesCommandsWhenLoopsEnd) {
  CommandDesk desk(2, {});
  (void)desk.begin_generation(1, 0, {});
  EXPECT_TRUE(desk.post({.post = 1, .name = "held"}).holds);
  const DeskActions ended = desk.loop_ended(0, 1);
  ASSERT_EQ(ended.answers.size(), 1U);
  EXPECT_STREQ(ended.answers[0].outcome.error().what(),
               "the command 'held' was not given to the loops: the loop of worker 0 ended before "
               "the command had a step");
  ASSERT_TRUE(ended.let_go);
  EXPECT_TRUE(ended.let_go->empty());
  const DeskActions refused = desk.post({.post = 2, .name = "late"});
  EXPECT_STREQ(refused.answers.at(0).outcome.error().what(),
               "the command 'late' was refused: loops of the job have ended, those of workers 0");
}

TEST(CommandDesk, FindsLoopsThatReadACommandInOtherSteps) {
  CommandDesk desk(2, {});
  (void)desk.post({.post = 1, .name = "rate"});
  (void)desk.begin_generation(1, 0, {});
  const CommandMark early[] = {{1, 3}};
  const CommandMark late[] = {{1, 4}};
  const DeskActions first = desk.read(0, 1, early, false);
  ASSERT_EQ(first.read.size(), 1U);
  EXPECT_EQ(first.read[0].worker, 0);
  const DeskActions second = desk.read(1, 1, late, false);
  ASSERT_TRUE(second.uneven);
  EXPECT_EQ(second.uneven->message,
            "worker 0 has read the command 'rate' in step 3, but worker 1 in step 4: all workers "
            "must call ctx.commands() in the same steps");
}

TEST(CommandDesk, SaysWhatACheckpointHasOfUnreadCommands) {
  CommandDesk desk(1, {});
  (void)desk.post({.post = 1, .name = "rate"});
  (void)desk.begin_generation(1, 4, {});
  const DeskActions ended =
      desk.end(Error(Errc::loop_failed, "it broke"), "/saved/step-4", desk.commands());
  ASSERT_EQ(ended.answers.size(), 1U);
  EXPECT_STREQ(ended.answers[0].outcome.error().what(),
               "the job has ended (it broke), and no loop has read the command 'rate', which the "
               "loops had from step 4 on: a loop reads its commands by ctx.commands(); the "
               "checkpoint /saved/step-4 has it, so the loops of a job that continues from it read "
               "it");
  EXPECT_EQ(ended.warnings.size(), 1U);
}

TEST(LoopCommands, FindsThatTheLoopLeftTheStepOfACommand) {
  LoopCommands loop;
  loop.start(2, {{.number = 1, .step = 2, .name = "rate"}});
  EXPECT_FALSE(loop.read_elsewhere({.worker = 1, .mark = {1, 3}}));
  EXPECT_FALSE(loop.begun(3));
  EXPECT_EQ(loop.begun(4).value_or(""),
            "worker 1 has read the command 'rate' in step 3, but this worker's loop continued to "
            "step 4 without reading it: all workers must call ctx.commands() in the same steps");
}

}  // namespace
}  // namespace weft::command_desk_test
