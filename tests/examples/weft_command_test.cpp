/// Tests `weft launch`, `inspect` and `doctor` as people use them, and in situations that people
/// may be in.

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "tests/support/app_process.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/small_shm.hpp"
#include "transport/board/board.hpp"
#include "transport/board/board_format.hpp"

namespace weft::weft_command_test {
namespace {

using testing::AppProcess;

std::string output_of(const std::vector<std::string>& words, int code = 0) {
  AppProcess process(words);
  EXPECT_EQ(process.wait(), code) << process.output();
  return process.output();
}

TEST(WeftDoctor, SaysWhatSharedMemoryLacks) {
  testing::in_own_shm("size=64m,huge=never", [] {
    const std::string text = output_of({WEFT, "doctor"});
    for (const char* words : {"64 of 64 MiB free", "remount,size=1024m", "--shm-size=1024m",
                              "never in /dev/shm", "remount,huge=advise", "NUMA nodes", "usable"}) {
      EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
    }
  });
}

TEST(WeftDoctor, HasNoAdviceWhereAllIsWell) {
  testing::in_own_shm("size=2g,huge=within_size", [] {
    const std::string text = output_of({WEFT, "doctor"});
    EXPECT_NE(text.find("within_size in /dev/shm"), std::string::npos) << text;
    EXPECT_EQ(text.find("mount"), std::string::npos) << text;
  });
}

TEST(WeftDoctor, SaysWhichLimitOfOpenFilesIsTooLow) {
  const auto doctor_at = [](int limit, int code) {
    return output_of(
        {"/bin/sh", "-c", fmt::format("ulimit -S -n {}; exec \"$0\" doctor", limit), WEFT}, code);
  };
  const std::string none = doctor_at(16, 1);
  for (const char* words : {"16 allowed, enough for 0 workers", "no job can run", "ulimit -n "}) {
    EXPECT_NE(none.find(words), std::string::npos) << words << "\n" << none;
  }
  const std::string enough = doctor_at(1500, 0);
  EXPECT_NE(enough.find("1500 allowed, enough for 24"), std::string::npos) << enough;
  EXPECT_EQ(enough.find("ulimit"), std::string::npos) << enough;
}

/// Launches fault_app on 2 workers of 2 chips; by default it would have 4 workers of 1 chip.
AppProcess launch(const std::vector<std::string>& fault_app_arguments) {
  std::vector<std::string> words{WEFT,        "launch", "-n",      "2",      "--chips",
                                 "2",         "--",     FAULT_APP, "--json", "/dev/null",
                                 "--workers", "4",      "--chips", "1"};
  words.insert(words.end(), fault_app_arguments.begin(), fault_app_arguments.end());
  return AppProcess(words);
}

/// A program that leads a session on its own terminal of 24 x 80 characters.
class OnTerminal {
 public:
  explicit OnTerminal(std::vector<std::string> words) {
    winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    pid_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
    if (pid_ == 0) {
      ::setenv("TERM", "xterm", 1);
      std::vector<char*> argv;
      for (std::string& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      ::execv(argv.front(), argv.data());
      ::_exit(127);
    }
  }
  ~OnTerminal() {
    if (terminal_ >= 0) hang_up();
    if (pid_ > 0) ::kill(pid_, SIGKILL);
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;

  void type(std::string_view keys) {
    EXPECT_EQ(::write(terminal_, keys.data(), keys.size()), std::ssize(keys));
  }
  /// Reads the screen until it shows `text`; returns false if the terminal is closed before that.
  bool shows(const std::string& text) {
    char block[256];
    while (screen_.find(text) == std::string::npos) {
      const ssize_t count = ::read(terminal_, block, sizeof block);
      if (count <= 0) return false;
      screen_.append(block, static_cast<std::size_t>(count));
    }
    return true;
  }
  /// Continues to read until `text` appears again.
  bool shows_next(const std::string& text) {
    screen_.clear();
    return shows(text);
  }
  void hang_up() { ::close(std::exchange(terminal_, -1)); }
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  const std::string& screen() const { return screen_; }

 private:
  pid_t pid_ = -1;
  int terminal_ = -1;
  std::string screen_;
};

std::vector<std::string> launched(const char* script) {
  return {WEFT, "launch", "--", "/bin/sh", "-c", script};
}

/// Makes a board that belongs to no job and names this process as the trainer. A test can write
/// anything to the board.
class ForgedBoard {
 public:
  explicit ForgedBoard(
      std::chrono::system_clock::time_point started = std::chrono::system_clock::now())
      : header_{.job = testing::unique_job(),
                .name = "forged",
                .run_dir = "/runs/forged",
                .mesh_shape = {2, 1},
                .axis_names = {"data", "model"},
                .num_workers = 1,
                .num_chips = 2,
                .trainer_pid = ::getpid(),
                .started_unix_ns = std::chrono::nanoseconds(started.time_since_epoch()).count()},
        board_(Board::create(header_)),
        segment_(Segment::open(Board::segment_name(header_.job), false, 1)) {
    board_->set_status(JobStatus::running);
  }
  ~ForgedBoard() { Segment::remove(Board::segment_name(header_.job)); }

  const std::string& job() const { return header_.job; }
  const Board& board() const { return *board_; }
  /// Releases the board as the kernel does when the process that made the board ends.
  void let_go() { board_.reset(); }
  board_format::BoardHeaderV1& bytes() {
    return *reinterpret_cast<board_format::BoardHeaderV1*>(segment_.data());
  }
  board_format::BoardRowV2& row(int index) {
    return reinterpret_cast<board_format::BoardRowV2*>(&bytes() + 1)[index];
  }
  std::string status() const {
    const auto json = nlohmann::json::parse(output_of({WEFT, "inspect", job(), "--json"}));
    return json.at("state");
  }

 private:
  BoardHeader header_;
  std::optional<Board> board_;
  Segment segment_;
};

TEST(WeftLaunch, SetsWorkersAndChipsAndTagsOutput) {
  AppProcess app = launch({"--mode", "mark"});
  const std::string job = app.job();
  const std::string line = app.wait_for_line("mark loop");
  EXPECT_EQ(line.find("[worker 1] mark loop"), 0U) << line;
  const auto board = nlohmann::json::parse(output_of({WEFT, "inspect", job, "--json"}));
  EXPECT_EQ(board.at("workers"), 2);
  EXPECT_EQ(board.at("chips"), 4);
  ::kill(std::stoi(line.substr(line.rfind(' '))), SIGKILL);
  EXPECT_EQ(app.wait(), 128 + SIGKILL);
  testing::expect_nothing_left(job);
}

TEST(WeftLaunch, RunsTheMainJobOnOtherSizesThanItsOwn) {
  AppProcess app({WEFT, "launch", "-n", "2", "--chips", "4", "--topology", "4x2", "--", DIGITS,
                  "--epochs", "1"});
  EXPECT_NE(app.wait_for_line("mesh (4,2) (\"data\",\"model\")"), "");
  EXPECT_EQ(app.wait(), 0) << app.output();
}

/// On the default mesh, plain data parallelism uses half of the chips. The job prints a hint once.
TEST(WeftLaunch, RunsAJobOnTheMeshThatTheHintNames) {
  const auto train = [](std::vector<std::string> words) {
    words.insert(words.begin(), {WEFT, "launch", "-n", "2", "--chips", "2"});
    for (const char* word : {"--", CHAR_GPT, "--layers", "1", "--size", "16", "--heads", "2",
                             "--length", "8", "--batch", "4", "--steps", "3", "--sample", "0"}) {
      words.push_back(word);
    }
    return output_of(words);
  };
  const std::string halved = train({});
  EXPECT_NE(halved.find("mesh (2,2) (\"data\",\"model\")"), halved.npos) << halved;
  const auto hint = halved.find("is sharded along \"model\"");
  ASSERT_NE(hint, halved.npos) << halved;
  EXPECT_EQ(halved.find("is sharded along", hint + 1), halved.npos) << halved;
  EXPECT_NE(halved.find("weft launch --mesh data=4,"), halved.npos) << halved;

  const std::string whole = train({"--mesh", "data=4"});
  EXPECT_NE(whole.find("mesh (4) (\"data\")"), whole.npos) << whole;
  EXPECT_EQ(whole.find("is sharded along"), whole.npos) << whole;
}

TEST(WeftLaunch, ReturnsTheExitCodeOfTheFirstCause) {
  EXPECT_EQ(launch({"--mode", "none"}).wait(), 0);
  EXPECT_EQ(launch({"--mode", "exit_3"}).wait(), 3);
  EXPECT_EQ(launch({"--mode", "segv"}).wait(), 128 + SIGSEGV);
  EXPECT_EQ(launch({"--mode", "throw"}).wait(), 1);
}

/// The program sets max_failures to 1; the command line's value overrides that.
TEST(WeftLaunch, SaysHowManyLossesAJobSurvives) {
  const auto exit_code = [](const char* max_failures) {
    AppProcess app({WEFT, "launch", "-n", "2", "--max-failures", max_failures, "--", FAULT_APP,
                    "--workers", "2", "--mode", "segv", "--max-failures", "1", "--json", "{json}"});
    return app.wait();
  };
  EXPECT_EQ(exit_code("0"), 128 + SIGSEGV);
  EXPECT_EQ(exit_code("-1"), 0);
}

TEST(WeftLaunch, PassesAnInterruptOn) {
  AppProcess app = launch({"--mode", "mark", "--grace", "0"});
  const std::string job = app.job();
  app.wait_for_line("mark loop");
  ::kill(app.pid(), SIGTERM);
  EXPECT_EQ(app.wait(), 128 + SIGTERM);
  testing::expect_nothing_left(job);
}

TEST(WeftLaunch, LetsTheProgramReadTheTerminal) {
  OnTerminal app(launched("read line; echo got $line"));
  app.type("hello\n");
  EXPECT_TRUE(app.shows("got hello")) << app.screen();
  EXPECT_EQ(app.wait(), 0);
}

TEST(WeftLaunch, LeavesItToTheTerminalToInterruptTheProgram) {
  OnTerminal app(launched(
      "trap 'n=$((n+1)); echo interrupted $n' INT; echo ready; until read line; do :; done; "
      "echo end $n"));
  EXPECT_TRUE(app.shows("ready")) << app.screen();
  app.type("\x03");
  EXPECT_TRUE(app.shows("interrupted 1")) << app.screen();
  app.type("go\n");
  EXPECT_TRUE(app.shows("end 1")) << app.screen();
  EXPECT_EQ(app.wait(), 0);
}

TEST(WeftLaunch, PassesOnAHangupThatTheProgramDoesntGet) {
  OnTerminal app(launched("echo ready; exec sleep 1000"));
  EXPECT_TRUE(app.shows("ready")) << app.screen();
  app.hang_up();
  EXPECT_EQ(app.wait(), 128 + SIGHUP);
}

TEST(WeftLaunch, LeavesIgnoredWhatWasIgnored) {
  const std::string masks =
      output_of({"/usr/bin/env", "--ignore-signal=HUP", WEFT, "launch", "--", "/bin/sh", "-c",
                 "grep -h SigIgn /proc/self/status /proc/$PPID/status"});
  std::istringstream words(masks);
  std::string label, program, launch;
  ASSERT_TRUE(words >> label >> program >> label >> launch) << masks;
  constexpr auto kHangup = 1ULL << (SIGHUP - 1);
  EXPECT_TRUE(std::stoull(program, nullptr, 16) & kHangup) << masks;
  EXPECT_TRUE(std::stoull(launch, nullptr, 16) & kHangup) << masks;
}

TEST(WeftLaunch, StartsTheProgramWithNoSignalBlocked) {
  EXPECT_EQ(output_of({WEFT, "launch", "--", "/bin/grep", "SigBlk", "/proc/self/status"}),
            "SigBlk:\t0000000000000000\n");
}

TEST(WeftLaunch, WaitsForTheProgramWhereEndsOfChildrenWereIgnored) {
  output_of(
      {"/usr/bin/env", "--ignore-signal=CHLD", WEFT, "launch", "--", "/bin/sh", "-c", "exit 7"}, 7);
}

TEST(WeftLaunch, TakesTheExitCodeFromAFileThatEndsWithIt) {
  AppProcess app({WEFT, "launch", "--", "/bin/sh", "-c",
                  "echo $WEFT_LAUNCH_RESULT; echo 9 > $WEFT_LAUNCH_RESULT; exit 1"});
  const pid_t launch = app.pid();
  EXPECT_EQ(app.wait(), 9);
  EXPECT_EQ(app.output().find(fmt::format("/proc/{}/fd/", launch)), 0U) << app.output();
}

TEST(WeftLaunch, SaysWhatItCantStart) {
  EXPECT_NE(output_of({WEFT, "launch", "--", "/no/such/program"}, 127).find("/no/such/program"),
            std::string::npos);
}

TEST(WeftInspect, ShowsEveryActorOfAJobThatRuns) {
  AppProcess app({FAULT_APP, "--json", "{json}", "--mode", "mark"});
  const std::string job = app.job();
  app.wait_for_line("mark loop");
  EXPECT_NE(output_of({WEFT, "inspect"}).find(job), std::string::npos);
  const std::string table = output_of({WEFT, "inspect", job.substr(0, 8)});
  EXPECT_NE(table.find("(3,2) (\"data\",\"model\")"), std::string::npos) << table;
  EXPECT_NE(table.find("running"), std::string::npos) << table;
  const auto show = nlohmann::json::parse(output_of({WEFT, "inspect", job, "--json"}));
  const std::string run_dir = show.at("run_dir");
  EXPECT_NE(output_of({WEFT, "inspect", run_dir}).find(job), std::string::npos);
  EXPECT_NE(output_of({WEFT, "inspect", "logs", run_dir}).find(" joined"), std::string::npos);
  const auto board = nlohmann::json::parse(output_of({WEFT, "inspect", "actors", job, "--json"}));
  ASSERT_EQ(board.at("actors").size(), 10U);
  EXPECT_EQ(board.at("actors")[0].at("kind"), "trainer");
  EXPECT_EQ(board.at("actors")[2].at("step"), 3);
  const std::string doing = board.at("actors")[9].at("doing");
  const std::size_t number = doing.find('#');
  ASSERT_NE(number, std::string::npos) << doing;
  EXPECT_GT(std::stoi(doing.substr(number + 1)), 0) << doing;
}

TEST(WeftInspect, ShowsTheStepsOfAJobThatHasEndedWell) {
  AppProcess app({FAULT_APP, "--json", "{json}", "--mode", "none", "--steps", "8"});
  EXPECT_EQ(app.wait(), 0) << app.output();
  const std::string run = app.result().at("path");
  const auto show = nlohmann::json::parse(output_of({WEFT, "inspect", run, "--json"}));
  EXPECT_EQ(show.at("state"), "succeeded");
  EXPECT_EQ(show.at("step"), 8);
  const std::string text = output_of({WEFT, "inspect", run});
  EXPECT_TRUE(std::regex_search(text, std::regex("step +8\n"))) << text;
}

/// The trainer is killed, so no process removes the board, and it can still be read. The job has
/// its own /dev/shm, in which no other test's job can sweep the board away.
TEST(WeftInspect, ShowsAJobThatIsDead) {
  testing::in_own_shm("size=1g", [] {
    AppProcess app({FAULT_APP, "--json", "{json}", "--mode", "mark"});
    const std::string job = app.job();
    app.wait_for_line("mark loop");
    ::kill(app.pid(), SIGKILL);
    app.wait();
    testing::wait_until([&] { return testing::processes_of(job).empty(); });
    const auto board = nlohmann::json::parse(output_of({WEFT, "inspect", job, "--json"}));
    EXPECT_EQ(board.at("state"), "dead");
    AppProcess sweeper({FAULT_APP, "--json", "{json}"});
    EXPECT_EQ(sweeper.wait(), 0);
    testing::expect_nothing_left(job);
  });
}

/// With its own /dev/shm, the test has the newest job.
TEST(WeftInspect, NamesTheJobThatWhyHasTaken) {
  testing::in_own_shm("size=64m", [] {
    const ForgedBoard board;
    const auto why = [](std::vector<std::string> more) {
      more.insert(more.begin(), {WEFT, "inspect", "why"});
      return output_of(more);
    };
    const std::string line = fmt::format("job      forged ({})\n", board.job());
    EXPECT_TRUE(why({}).starts_with(line)) << why({});
    EXPECT_FALSE(why({board.job()}).starts_with("job ")) << why({board.job()});
    EXPECT_EQ(nlohmann::json::parse(why({"--json"})).at("job"), board.job());
  });
}

TEST(WeftInspect, SaysThatThereIsNoSuchJob) {
  EXPECT_NE(output_of({WEFT, "inspect", "zzz"}, 2).find("no job \"zzz\""), std::string::npos);
}

TEST(WeftInspect, ListsTheOthersBesideABoardThatItCantRead) {
  const ForgedBoard good;
  ForgedBoard bad;
  bad.bytes().status = 9;
  const std::string list = output_of({WEFT, "inspect"}, 3);
  EXPECT_NE(list.find(fmt::format("job {0}: board of job {0}: status is 9\n", bad.job())),
            std::string::npos)
      << list;
  EXPECT_NE(list.find("\n" + good.job() + "  forged  "), std::string::npos) << list;
  EXPECT_NE(output_of({WEFT, "inspect", bad.job()}, 3).find("status is 9"), std::string::npos);
  output_of({WEFT, "inspect", good.job()});
}

TEST(WeftInspect, SaysWhichRowOfTheJobItCantRead) {
  ForgedBoard board;
  board.row(1).state = 200;
  const std::string table = output_of({WEFT, "inspect", "actors", board.job()});
  EXPECT_NE(table.find("row 1 is of kind 1, worker 0, chip -1, in state 200"), std::string::npos)
      << table;
  const auto json =
      nlohmann::json::parse(output_of({WEFT, "inspect", "actors", board.job(), "--json"}));
  EXPECT_EQ(json.at("unreadable").size(), 1U) << json;
}

TEST(WeftInspect, ShowsAMeshThatCantBe) {
  ForgedBoard board;
  board.bytes().mesh_shape[0] = -7;
  std::strcpy(board.bytes().axis_names[1], "data");
  EXPECT_NE(output_of({WEFT, "inspect", board.job()}).find("(-7,1) (\"data\",\"data\")"),
            std::string::npos);
}

TEST(WeftInspect, ShowsControlCharactersOfABoardAsText) {
  ForgedBoard board;
  std::strcpy(board.bytes().name, "a\x1b[2J");
  std::strcpy(board.bytes().run_dir, "/runs\nrun folder /b");
  std::strcpy(board.bytes().axis_names[0], "c\x9b");
  board.board().trainer().error("d\x1b]0;");
  board.board().device(0).enter_collective(1, "e\rf");
  const std::string list = output_of({WEFT, "inspect"});
  const std::string table = output_of({WEFT, "inspect", board.job()}) +
                            output_of({WEFT, "inspect", "actors", board.job()});
  EXPECT_NE(list.find("a\\x1b[2J"), std::string::npos) << list;
  for (const char* text : {"a\\x1b[2J", "\"c\\x9b\""}) {
    EXPECT_NE(table.find(text), std::string::npos) << table;
  }
  for (const char* text : {"/runs\\x0arun folder /b\n", "d\\x1b]0;", "in #1 e\\x0df"}) {
    EXPECT_NE(table.find(text), std::string::npos) << table;
  }
  EXPECT_EQ((list + table).find_first_of("\x1b\x9b\r"), std::string::npos);
  const auto json = nlohmann::json::parse(output_of({WEFT, "inspect", board.job(), "--json"}));
  EXPECT_EQ(json.at("name"), "a\x1b[2J");
  EXPECT_EQ(json.at("mesh").at("axes")[0], "c\uFFFD");
}

/// The system clock may have been set back or ahead by years since the board was written.
TEST(WeftInspect, TakesAJobForAliveWhateverTheClockSays) {
  using std::chrono::system_clock;
  for (const auto years : {-20, 20}) {
    const ForgedBoard board(system_clock::now() + std::chrono::hours(24 * 365 * years));
    EXPECT_EQ(board.status(), "running") << years;
  }
}

/// The board names this process as its trainer, but this process doesn't hold the board.
TEST(WeftInspect, TakesAJobWhoseBoardNobodyHoldsForDead) {
  ForgedBoard board;
  board.let_go();
  EXPECT_EQ(board.status(), "dead");
  // The widths of the columns depend on the other jobs of this machine.
  EXPECT_TRUE(
      std::regex_search(output_of({WEFT, "inspect"}), std::regex(board.job() + " +forged +dead ")));
}

/// Keys sort, filter, enter an actor's view and end the program; after that the terminal is as it
/// was before.
TEST(InspectTop, ObeysKeysOnATerminal) {
  const ForgedBoard forged;
  forged.board().trainer().open(ActorKind::trainer, -1, -1, ::getpid());
  forged.board().worker(0).open(ActorKind::worker, 0, -1, ::getpid());
  for (const int chip : {0, 1}) {
    forged.board().device(chip).open(ActorKind::device, 0, chip, ::getpid());
  }
  OnTerminal top({WEFT, "inspect", "top", forged.job()});
  EXPECT_TRUE(top.shows("\x1b[?1049h"));
  EXPECT_TRUE(top.shows("chip 1"));
  top.type("s");
  EXPECT_TRUE(top.shows_next("sort (state)"));
  top.type("/chip 1");
  EXPECT_TRUE(top.shows_next("filter: chip 1_"));
  top.type("\r\r");
  EXPECT_TRUE(top.shows_next("unread       0"));
  top.type("m");
  EXPECT_TRUE(top.shows_next("model"));
  forged.board().device(1).step(4711);
  top.type("w\x1b");
  EXPECT_TRUE(top.shows_next("4711"));
  top.type("q");
  EXPECT_TRUE(top.shows_next("\x1b[?1049l"));
  EXPECT_EQ(top.wait(), 0);
}

TEST(WeftPlan, OfAProgramIsThatOfItsFirstStep) {
  const auto plan = nlohmann::json::parse(
      output_of({WEFT, "plan", "--json", "-n", "2", "--chips", "2", "--", DIGITS}));
  EXPECT_EQ(plan.at("schema"), "weft.plan/1");
  EXPECT_EQ(plan.at("workers"), 2);
  EXPECT_EQ(plan.at("chips_per_worker"), 2);
  EXPECT_GT(plan.at("chip_bytes").at("needed"), 0);
  EXPECT_FALSE(plan.at("collectives").empty());
  for (const auto& collective : plan.at("collectives")) {
    EXPECT_GT(collective.at("predicted_s"), 0) << collective;
  }
  EXPECT_EQ(plan.at("largest").size(), 5U);
  EXPECT_TRUE(plan.at("refused").empty());
  const std::string text = output_of({WEFT, "plan", "-n", "2", "--chips", "2", "--", DIGITS});
  EXPECT_NE(text.find("memory of a chip"), std::string::npos) << text;
}

/// If /dev/shm is too small for the job, the first step isn't reached.
TEST(WeftPlan, IsRefusedWhereMemoryIsShort) {
  testing::in_own_shm("size=24m", [] {
    const std::string text = output_of({WEFT, "plan", "-n", "3", "--chips", "2", "--", FAULT_APP,
                                        "--mode", "big", "--at", "0", "--json", "/dev/null"},
                                       3);
    EXPECT_NE(text.find("refused: /dev/shm has"), std::string::npos) << text;
  });
}

}  // namespace
}  // namespace weft::weft_command_test
