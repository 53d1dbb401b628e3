#include "inspect/process/held_thread.hpp"

#include <elf.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr std::size_t kStackBytes = 64 << 10;
constexpr std::size_t kPageBytes = 4096;
constexpr int kWaitMs = 20;

std::size_t copy_from(int pid, std::uint64_t address, void* to, std::size_t bytes) {
  iovec local{to, bytes};
  iovec remote{reinterpret_cast<void*>(address), bytes};
  const ssize_t count = ::process_vm_readv(pid, &local, 1, &remote, 1, 0);
  return count < 0 ? 0 : static_cast<std::size_t>(count);
}

/// Waits for the thread to stop. Doesn't reap a process that has ended, because only the parent of
/// the process may do that.
bool wait_until_held(int tid) {
  for (int i = 0; i < kWaitMs * 10; ++i) {
    siginfo_t seen{};
    if (::waitid(P_PID, static_cast<id_t>(tid), &seen, WSTOPPED | WNOHANG | __WALL) == 0 &&
        seen.si_pid == tid) {
      return true;
    }
    const timespec pause{.tv_sec = 0, .tv_nsec = 100'000};
    ::ppoll(nullptr, 0, &pause, nullptr);
  }
  return false;
}

#ifdef __x86_64__
/// Copies the stack, from the red zone below the stack pointer on.
void copy_stack(HeldThread& thread, int pid) {
  constexpr std::uint64_t kRedZone = 128;
  thread.stack_begin = thread.registers.rsp - kRedZone;
  thread.stack.resize(kStackBytes);
  std::size_t copied = 0;
  while (copied < kStackBytes) {
    const std::uint64_t address = thread.stack_begin + copied;
    const std::size_t in_page = kPageBytes - address % kPageBytes;
    const std::size_t bytes = std::min(in_page, kStackBytes - copied);
    if (copy_from(pid, address, thread.stack.data() + copied, bytes) != bytes) break;
    copied += bytes;
  }
  thread.stack.resize(copied);
}
#else
void copy_stack(HeldThread&, int) {}
#endif

/// Reads a thread that waits uninterruptibly, for a disk or for a child of vfork(). Such a thread
/// can't be held, but it doesn't move, and /proc shows its system call, its position and its stack
/// pointer. The other registers stay 0, because few frames need them.
bool read_sleeping(HeldThread& thread) {
#ifdef __x86_64__
  std::ifstream file(fmt::format("/proc/{}/syscall", thread.tid));
  long call = 0;
  user_regs_struct& r = thread.registers;
  if (!(file >> call >> std::hex)) return false;  // "running"
  // If `call` is -1, the thread is in no system call and waits for a page; there are then no
  // arguments.
  if (call != -1) file >> r.rdi >> r.rsi >> r.rdx >> r.r10 >> r.r8 >> r.r9;
  return static_cast<bool>(file >> r.rsp >> r.rip);
#else
  (void)thread;
  return false;
#endif
}

std::string why_refused(int error) {
  if (error != EPERM) return std::strerror(error);
  return "not permitted: the process belongs to another user or is held by a debugger, or the "
         "system forbids it (in a container: run it with --cap-add SYS_PTRACE; otherwise see "
         "/proc/sys/kernel/yama/ptrace_scope)";
}

HeldThread hold_thread(int pid, int tid) {
  HeldThread thread{.tid = tid};
  if (::ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0) {
    thread.why_not = why_refused(errno);
    return thread;
  }
  if (::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) != 0 || !wait_until_held(tid)) {
    if (read_sleeping(thread)) {
      copy_stack(thread, pid);
    } else {
      thread.why_not = fmt::format("the thread doesn't answer within {} ms", kWaitMs);
    }
  } else {
    iovec registers{&thread.registers, sizeof thread.registers};
    if (::ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &registers) == 0) {
      copy_stack(thread, pid);
    } else {
      thread.why_not = std::strerror(errno);
    }
  }
  ::ptrace(PTRACE_DETACH, tid, nullptr, nullptr);
  return thread;
}

}  // namespace

bool HeldThread::read(int pid, std::uint64_t address, std::uint64_t& word) const {
  if (address >= stack_begin && stack.size() >= sizeof word &&
      address - stack_begin <= stack.size() - sizeof word) {
    std::memcpy(&word, stack.data() + (address - stack_begin), sizeof word);
    return true;
  }
  return copy_from(pid, address, &word, sizeof word) == sizeof word;
}

std::vector<HeldThread> hold_threads(int pid, std::span<const int> tids) {
  std::vector<HeldThread> held;
  std::jthread([&] {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    for (const int tid : tids) held.push_back(hold_thread(pid, tid));
  }).join();
  return held;
}

}  // namespace weft
