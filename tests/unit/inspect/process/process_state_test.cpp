#include "inspect/process/process_state.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/support/child_process.hpp"

namespace weft::process_state_test {
namespace {

using testing::ChildProcess;

TEST(ProcessState, OfThisProcessHasItsThreads) {
  const ProcessState self = read_process(::getpid(), boottime_ns());
  EXPECT_EQ(self.state, 'R');
  EXPECT_FALSE(self.frozen());
  EXPECT_NE(self.thread(::getpid()), nullptr);
  EXPECT_GT(self.core_ns, 0U);
}

TEST(ProcessState, OfAStoppedProcessSaysSo) {
  ChildProcess child([] { ::raise(SIGSTOP); });
  int status = 0;
  ::waitpid(child.pid(), &status, WUNTRACED);
  const ProcessState state = read_process(child.pid(), boottime_ns());
  EXPECT_TRUE(state.stopped());
  EXPECT_TRUE(state.frozen());
  EXPECT_EQ(describe(state), "is stopped");
  ::kill(child.pid(), SIGCONT);
  EXPECT_EQ(child.join(), "");
}

TEST(ProcessState, OfAnEndedProcessIsGone) {
  ChildProcess child([] {});
  const pid_t pid = child.pid();
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT);
  EXPECT_TRUE(read_process(pid, boottime_ns()).gone());
  EXPECT_EQ(child.join(), "");
  EXPECT_TRUE(read_process(pid, boottime_ns()).gone());
  EXPECT_TRUE(read_process(0, boottime_ns()).gone());
}

/// The system reuses process ids, so a process with this id that began later is another process.
TEST(ProcessState, AProcessThatBeganAfterTheOneThatIsMeantIsAnother) {
  EXPECT_TRUE(read_process(::getpid(), 1).gone());
}

}  // namespace
}  // namespace weft::process_state_test
