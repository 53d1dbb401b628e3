#include "inspect/process/stack.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <mutex>
#include <thread>
#include <vector>

#include "inspect/process/futex_wait.hpp"
#include "inspect/process/process_state.hpp"
#include "tests/support/child_process.hpp"

namespace weft::stack_test {

/// These functions have external linkage, so that the stack has their names.
[[gnu::noinline]] void spin_for_ever() {
  for (volatile unsigned rounds = 0;;) rounds = rounds + 1;
}

namespace {

using testing::ChildProcess;

[[gnu::noinline]] void lock_twice() {
  std::mutex mutex;
  mutex.lock();
  mutex.lock();
}

ThreadStack stack_of(pid_t pid) {
  const int tid = pid;
  return read_stacks(pid, std::span(&tid, 1)).at(0);
}

bool has(const ThreadStack& stack, std::string_view function) {
  return std::ranges::any_of(stack.frames, [&](const StackFrame& frame) {
    return frame.function.find(function) != std::string::npos;
  });
}

TEST(Stack, OfARunningProcessHasItsFunctions) {
  ChildProcess child([] { spin_for_ever(); });
  // At first the child is still in fork().
  ThreadStack stack = stack_of(child.pid());
  if (!stack.why_not.empty()) GTEST_SKIP() << stack.why_not;
  while (!has(stack, "spin_for_ever")) stack = stack_of(child.pid());
  const auto frame = std::ranges::find_if(stack.frames, [](const StackFrame& candidate) {
    return candidate.function.find("spin_for_ever") != std::string::npos;
  });
#ifndef __clang__  // libdw finds no lines in the output of clang-16 for the asan preset
  EXPECT_EQ(frame->file, "stack_test.cpp");
  EXPECT_GT(frame->line, 0);
#else
  (void)frame;
#endif
  EXPECT_EQ(read_process(child.pid(), boottime_ns()).state, 'R');
}

TEST(Stack, AStoppedProcessStaysStopped) {
  ChildProcess child([] { ::raise(SIGSTOP); });
  int status = 0;
  ::waitpid(child.pid(), &status, WUNTRACED);
  const ThreadStack stack = stack_of(child.pid());
  if (!stack.why_not.empty()) GTEST_SKIP() << stack.why_not;
  EXPECT_TRUE(has(stack, "raise")) << stack.frames.size();
  EXPECT_TRUE(read_process(child.pid(), boottime_ns()).stopped());
  ::kill(child.pid(), SIGCONT);
  EXPECT_EQ(child.join(), "");
}

#ifndef WEFT_THREAD_SANITIZER  // ThreadSanitizer supports no threads in forks
/// The reader stops the child's threads with ptrace. When the child dies meanwhile, this process
/// must still be able to wait for it.
TEST(Stack, AProcessThatDiesMeanwhileCanBeWaitedFor) {
  for (int i = 0; i < 20; ++i) {
    ChildProcess child([] {
      const std::jthread other(spin_for_ever);
      spin_for_ever();
    });
    std::vector<int> tids;
    while (tids.size() < 2) {
      tids.clear();
      for (const ThreadState& thread : read_process(child.pid(), boottime_ns()).threads) {
        tids.push_back(thread.tid);
      }
    }
    const std::jthread killer([&] { ::kill(child.pid(), SIGKILL); });
    (void)read_stacks(child.pid(), tids);
    EXPECT_NE(child.join(), "");
  }
}
#endif

TEST(Stack, OfAProcessThatIsGoneSaysWhyThereIsNone) {
  ChildProcess child([] {});
  const pid_t pid = child.pid();
  EXPECT_EQ(child.join(), "");
  const ThreadStack stack = stack_of(pid);
  EXPECT_TRUE(stack.frames.empty());
  EXPECT_FALSE(stack.why_not.empty());
}

TEST(FutexWait, NamesTheThreadThatHoldsTheMutex) {
  ChildProcess child([] { lock_twice(); });
  const int pid = child.pid();
  FutexWait wait;
  while (wait.mutex_owner == 0) {
    wait = read_futex_wait(pid, std::span(&pid, 1));
    const ProcessState state = read_process(pid, boottime_ns());
    if (state.thread(pid) != nullptr && state.thread(pid)->wchan.starts_with("futex")) {
      wait = read_futex_wait(pid, std::span(&pid, 1));
      if (wait.mutex_owner == 0) GTEST_SKIP() << "/proc/PID/syscall isn't told here";
    }
    ::sched_yield();
  }
  EXPECT_EQ(wait.mutex_owner, pid);
  EXPECT_EQ(wait.joins, 0);
}

}  // namespace
}  // namespace weft::stack_test
