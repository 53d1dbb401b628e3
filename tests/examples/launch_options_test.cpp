/// Tests the options of `weft launch` on programs that print, wait and fail, and programs that
/// other launchers start.

#include <gtest/gtest.h>
#include <pty.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "tests/support/app_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::launch_options_test {
namespace {

using testing::AppProcess;

struct Ended {
  std::string output;
  int code;
};

Ended run(std::vector<std::string> words, const std::vector<std::string>& variables = {}) {
  AppProcess process(std::move(words), variables);
  const int code = process.wait();
  return {process.output(), code};
}

Ended launch(std::vector<std::string> options, const std::string& script) {
  std::vector<std::string> words{WEFT, "launch"};
  words.insert(words.end(), options.begin(), options.end());
  for (const std::string& word :
       {std::string("--"), std::string("/bin/sh"), std::string("-c"), script}) {
    words.push_back(word);
  }
  return run(std::move(words));
}

/// Returns the words that launch fault_app on 2 workers of 2 chips.
std::vector<std::string> fault_app(std::vector<std::string> launch_options, const char* mode) {
  std::vector<std::string> words{WEFT, "launch", "-n", "2", "--chips", "2"};
  words.insert(words.end(), launch_options.begin(), launch_options.end());
  for (const char* word :
       {"--", FAULT_APP, "--json", "/dev/null", "--workers", "4", "--chips", "1", "--mode", mode}) {
    words.push_back(word);
  }
  return words;
}

std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Runs a program with all streams on its own terminal, and returns the text of the screen.
Ended on_terminal(std::vector<std::string> words) {
  int terminal = -1;
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (pid == 0) {
    ::setenv("TERM", "xterm", 1);
    ::unsetenv("NO_COLOR");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::execv(argv.front(), argv.data());
    ::_exit(127);
  }
  Ended ended;
  std::array<char, 4096> block;
  for (ssize_t size; (size = ::read(terminal, block.data(), block.size())) > 0;) {
    ended.output.append(block.data(), static_cast<std::size_t>(size));
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  ::close(terminal);
  ended.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return ended;
}

TEST(LaunchOutput, StaysTheProgramsOwnWhereNoOptionReadsIt) {
  const std::string links = "readlink /proc/$PPID/fd/1 /proc/self/fd/1";
  std::istringstream out(launch({}, links).output);
  std::string launcher, program;
  ASSERT_TRUE(out >> launcher >> program);
  EXPECT_EQ(launcher, program);
  std::istringstream read_out(launch({"--tag-output"}, links).output);
  std::string tag;
  ASSERT_TRUE(read_out >> tag >> launcher >> tag >> program);
  EXPECT_NE(launcher, program);
}

TEST(LaunchOutput, IsTaggedAndFilteredByWriter) {
  const char* script = "echo '[worker 0] a'; echo '[worker 1] b'; echo c";
  EXPECT_EQ(launch({"--tag-output", "--only", "1"}, script).output, "[worker 1] b\n[program] c\n");
  EXPECT_EQ(launch({"--only", "0"}, script).output, "[worker 0] a\nc\n");
}

TEST(LaunchOutput, GoesToAFileForEachWriter) {
  const testing::TemporaryFolder folder;
  const std::string logs = folder.path() + "/deep/logs";
  const Ended ended = launch({"--log-dir", logs, "--only", "0"},
                             "echo '[worker 0] a'; echo '[worker 1] b'; echo c; printf d");
  EXPECT_EQ(ended.output, "[worker 0] a\nc\nd");
  EXPECT_EQ(read(folder.path() + "/deep/logs/worker-0.log"), "a\n");
  EXPECT_EQ(read(folder.path() + "/deep/logs/worker-1.log"), "b\n");
  EXPECT_EQ(read(folder.path() + "/deep/logs/program.log"), "c\nd\n");
  const Ended refused = launch({"--log-dir", "/proc/no"}, "echo a");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.output.find("--log-dir \"/proc/no\""), std::string::npos) << refused.output;
}

TEST(LaunchOutput, OfWorkersIsFilteredByNumber) {
  const Ended ended = run(fault_app({"--only", "1"}, "none"));
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(ended.output.find("[worker 0]"), std::string::npos) << ended.output;
}

TEST(LaunchOutput, KeepsAllThatAnEndedProgramHasLeft) {
  const Ended ended = launch({"--tag-output"},
                             "i=0; while [ $i -lt 3000 ]; do echo line $i; "
                             "i=$((i+1)); done");
  EXPECT_EQ(ended.output.size(),
            3000 * std::string("[program] line ").size() + 10 * 2 + 90 * 3 + 900 * 4 + 2000 * 5);
}

TEST(LaunchOnATerminal, LetsTheProgramPrintAsOnATerminal) {
  const Ended ended = on_terminal({WEFT, "launch", "--", "/bin/sh", "-c",
                                   "test -t 1 && test -t 2 && stty size <&1 >/dev/null && echo "
                                   "terminal; echo '[worker 1] b'; exit 5"});
  EXPECT_EQ(ended.code, 5);
  EXPECT_EQ(ended.output, "terminal\r\n\x1b[33m[worker 1]\x1b[0m b\r\n");
  EXPECT_EQ(on_terminal({WEFT, "launch", "--no-progress", "--", "/bin/echo", "a"}).output, "a\r\n");
}

/// The progress line is drawn below the output and removed at the end. No output of the program is
/// overwritten.
TEST(LaunchOnATerminal, ShowsOneLineOfProgress) {
  const Ended ended = on_terminal({WEFT, "launch", "--steps", "100000", "-n", "2", "--chips", "2",
                                   "--", DIGITS, "--epochs", "40"});
  EXPECT_EQ(ended.code, 0) << ended.output;
  const auto line = ended.output.find("digits  step ");
  ASSERT_NE(line, std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("  4 chips", line), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("epoch  40/40"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("run folder: "), std::string::npos) << ended.output;
  const auto last = ended.output.rfind("digits  step ");
  EXPECT_NE(ended.output.find("\r\x1b[K", last), std::string::npos) << ended.output.substr(last);
}

TEST(LaunchEnvironment, GivesVariablesAndAFolder) {
  const testing::TemporaryFolder folder;
  const Ended ended = launch({"--env", "A=b c", "--env", "B=", "--cwd", folder.path()},
                             "pwd; echo \"$A|${B-unset}\"");
  EXPECT_EQ(ended.output, std::filesystem::canonical(folder.path()).string() + "\nb c|\n");
}

TEST(LaunchEnvironment, GivesWorkerZeroTheStdin) {
  const Ended ended = run({"/bin/sh", "-c",
                           "echo hello | \"$0\" launch -n 2 --chips 2 -- \"$1\" --json /dev/null "
                           "--workers 4 --chips 1 --mode read_stdin",
                           WEFT, FAULT_APP});
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_NE(ended.output.find("[worker 0] stdin: hello\n"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("[worker 1] stdin: \n"), std::string::npos) << ended.output;
}

TEST(LaunchBindings, AreReported) {
  const Ended all = run(fault_app({"--report-bindings"}, "none"));
  EXPECT_EQ(all.code, 0) << all.output;
  EXPECT_NE(all.output.find("worker 1: CPUs "), std::string::npos) << all.output;
  EXPECT_NE(all.output.find(", the same for all workers\n"), std::string::npos) << all.output;
}

TEST(LaunchBindings, GiveEachWorkerItsOwnCores) {
  cpu_set_t usable;
  ::sched_getaffinity(0, sizeof usable, &usable);
  const Ended ended = run(fault_app({"--bind", "cores", "--report-bindings"}, "none"));
  if (ended.code != 0) {  // this machine has only one core for 2 workers
    EXPECT_NE(ended.output.find("--bind cores: 2 workers on 1 cores"), std::string::npos)
        << ended.output;
    return;
  }
  const auto cpus_of = [&](const std::string& worker) {
    const auto begin = ended.output.find(worker + ": CPUs ");
    return ended.output.substr(begin + worker.size(), ended.output.find('\n', begin) - begin);
  };
  EXPECT_NE(cpus_of("worker 0"), cpus_of("worker 1")) << ended.output;
  EXPECT_EQ(ended.output.find("the same for all workers"), std::string::npos) << ended.output;
}

TEST(LaunchTimeout, EndsAProgramWithTheExitCodeOfTimeout) {
  const Ended ended = launch({"--timeout", "0.05"}, "exec sleep 1000");
  EXPECT_EQ(ended.code, 124) << ended.output;
  EXPECT_NE(ended.output.find("--timeout"), std::string::npos) << ended.output;
  EXPECT_EQ(launch({"--timeout", "1000"}, "exit 3").code, 3);
}

TEST(LaunchDryRun, StartsNothing) {
  const Ended ended = launch({"--dry-run", "-n", "3"}, "exit 7");
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.output, "WEFT_LAUNCH_WORKERS=3 WEFT_LAUNCH_STDIN=1 /bin/sh -c 'exit 7'\n");
}

TEST(LaunchEnd, SaysTheFirstCauseLast) {
  const Ended ended = run(fault_app({}, "segv"));
  EXPECT_EQ(ended.code, 128 + SIGSEGV);
  const auto cause = ended.output.find("weft launch: exit code 139: ");
  ASSERT_NE(cause, std::string::npos) << ended.output;
  const auto command =
      ended.output.find("weft launch: for details, run: weft inspect why /", cause);
  ASSERT_NE(command, std::string::npos) << ended.output;
  EXPECT_EQ(ended.output.find('\n', command), ended.output.size() - 1) << ended.output;
}

/// Starts the program as `srun -n 2 ./app` would.
TEST(OtherLaunchers, MakeTheFirstProcessTheTrainerOfAllWorkers) {
  const std::vector<std::string> app{FAULT_APP, "--json", "/dev/null", "--workers", "4",
                                     "--chips", "1",      "--mode",    "mark"};
  const auto variables = [](const char* rank) {
    return std::vector<std::string>{fmt::format("SLURM_PROCID={}", rank), "SLURM_STEP_NUM_TASKS=2",
                                    "SLURM_STEP_NUM_NODES=1", "WEFT_LAUNCH_CHIPS=2"};
  };
  AppProcess first(app, variables("0"));
  const std::string job = first.job();
  first.wait_for_line("mark loop");
  EXPECT_EQ(testing::processes_of(job).size(), 2U);
  const Ended second = run(app, variables("1"));
  EXPECT_EQ(second.code, 0) << second.output;
  EXPECT_EQ(second.output.find("job "), std::string::npos) << second.output;
  ::kill(first.pid(), SIGINT);
  first.wait();
  testing::expect_nothing_left(job);
}

TEST(OtherLaunchers, IncludeARealMpirun) {
  if (std::system("command -v mpirun >/dev/null 2>&1") != 0) GTEST_SKIP() << "no mpirun here";
  const Ended ended =
      run({"/usr/bin/env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "mpirun",
           "--oversubscribe", "-n", "2", DIGITS, "--epochs", "1", "--chips", "2"});
  EXPECT_EQ(ended.code, 0) << ended.output;
  const auto job = ended.output.find(" on 2 workers");
  ASSERT_NE(job, std::string::npos) << ended.output;
  EXPECT_EQ(ended.output.find(" on 2 workers", job + 1), std::string::npos) << ended.output;
}

TEST(LaunchOptions, TakesTheNameThatMpirunHasForWorkers) {
  const std::vector<std::string> echo{"--", "/bin/sh", "-c", "echo $WEFT_LAUNCH_WORKERS \"$@\"",
                                      "sh", "-np",     "7"};
  for (const std::vector<std::string>& given :
       {std::vector<std::string>{"-np", "2"}, {"--np", "2"}, {"--chips", "1", "-np", "2"}}) {
    std::vector<std::string> words{WEFT, "launch"};
    words.insert(words.end(), given.begin(), given.end());
    words.insert(words.end(), echo.begin(), echo.end());
    const Ended ended = run(words);
    EXPECT_EQ(ended.code, 0) << ended.output;
    EXPECT_EQ(ended.output, "2 -np 7\n");
  }
}

TEST(LaunchOptions, TheFolderIsWhereTheProgramBelievesToBe) {
  const testing::TemporaryFolder folder;
  const std::string real = std::filesystem::canonical(folder.path()).string();
  const std::string said = launch({"--cwd", folder.path()}, "printenv PWD; pwd -P").output;
  EXPECT_EQ(said, real + "\n" + real + "\n");
}

/// The progress bar of a killed program doesn't end with a newline, so the launcher has to add one.
TEST(LaunchOutput, WhatTheLauncherSaysHasALineOfItsOwn) {
  const Ended ended = on_terminal({WEFT, "launch", "--timeout", "0.2", "--", "/bin/sh", "-c",
                                   "printf 'epoch 3/60 [===  ]' >&2; exec sleep 100"});
  EXPECT_EQ(ended.code, 124);
  EXPECT_NE(ended.output.find("[===  ]\r\n"
                              "weft launch: the time limit is over"),
            std::string::npos)
      << ended.output;
}

TEST(LaunchEnd, OfASignalIsThatOfTheSignal) {
  for (const int signal : {SIGINT, SIGTERM}) {
    AppProcess process(fault_app({}, "mark"));
    process.wait_for_line("mark loop");
    ::kill(process.pid(), signal);
    if (signal == SIGTERM) ::kill(process.pid(), SIGINT);  // the loop never asks to end
    const int code = process.wait();
    EXPECT_TRUE(code == 128 + SIGINT || code == 128 + signal) << process.output();
  }
}

}  // namespace
}  // namespace weft::launch_options_test
