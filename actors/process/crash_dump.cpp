#include "actors/process/crash_dump.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <exception>
#include <string_view>

#include "actors/process/failure.hpp"
#include "transport/job/crash_format.hpp"

namespace weft {
namespace {

constexpr std::array kCrashSignals{SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
constexpr std::size_t kPageBytes = 4096;

/// The data that the handler uses, which is set before the handler is installed.
struct Crashes {
  char file[4096]{};
  BoardWriter row;
  pid_t pid = 0;
  bool has_said = false;  ///< the row already shows what caused the signal: an exception or a
                          ///< failed check
  std::terminate_handler before = nullptr;
  std::atomic_flag taken{};  ///< set by the first thread that crashes
};
Crashes crashes;
alignas(16) char main_stack[64 << 10];

#ifdef __x86_64__

/// Writes all bytes, or as many as the disk has room for. Stops at memory that isn't mapped.
void write_all(int file, const void* bytes, std::size_t count) {
  const char* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = ::write(file, from, count);
    if (written <= 0) return;
    from += written;
    count -= static_cast<std::size_t>(written);
  }
}

void write_maps(int file) {
  const int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (maps < 0) return;
  char block[1024];
  for (ssize_t count = 0; (count = ::read(maps, block, sizeof block)) > 0;) {
    write_all(file, block, static_cast<std::size_t>(count));
  }
  ::close(maps);
}

CrashHeaderV1 header_of(int signal, const siginfo_t& info, const ucontext_t& context) {
  constexpr std::array kOrder{REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                              REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                              REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  constexpr std::uint64_t kRedZone = 128;
  CrashHeaderV1 header{.magic = CrashHeaderV1::kMagic,
                       .pid = crashes.pid,
                       .tid = ::gettid(),
                       .signal = signal,
                       .code = info.si_code,
                       .address = reinterpret_cast<std::uint64_t>(info.si_addr),
                       .registers = {},
                       .stack_begin = 0,
                       .stack_bytes = CrashHeaderV1::kStackBytesMax};
  for (std::size_t i = 0; i < kOrder.size(); ++i) {
    header.registers[i] = static_cast<std::uint64_t>(context.uc_mcontext.gregs[kOrder[i]]);
  }
  header.stack_begin = static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RSP]) - kRedZone;
  return header;
}

/// Writes the stack page by page. Zeros replace pages that can't be read.
void write_stack(int file, const CrashHeaderV1& header) {
  for (std::uint64_t done = 0; done < header.stack_bytes;) {
    const std::uint64_t address = header.stack_begin + done;
    const std::uint64_t bytes =
        std::min(kPageBytes - address % kPageBytes, header.stack_bytes - done);
    ::lseek(file, static_cast<off_t>(sizeof header + done), SEEK_SET);
    write_all(file, reinterpret_cast<const void*>(address), bytes);
    done += bytes;
  }
  ::lseek(file, static_cast<off_t>(sizeof header + header.stack_bytes), SEEK_SET);
}

void say(int signal, const siginfo_t& info) {
  if (crashes.has_said) return;
  const char* const name = ::sigabbrev_np(signal);
  char text[64] = "SIG";
  std::strncat(text, name != nullptr ? name : "?", 16);
  if (info.si_code > 0 && signal != SIGABRT) {
    std::strcat(text, " at address 0x");
    const auto address = reinterpret_cast<std::uint64_t>(info.si_addr);
    char* end = text + std::strlen(text);
    int shift = 60;
    while (shift > 0 && (address >> static_cast<unsigned>(shift)) == 0) shift -= 4;
    for (; shift >= 0; shift -= 4) *end++ = "0123456789abcdef"[address >> shift & 0xfU];
    *end = '\0';
  }
  crashes.row.error(text);
}

/// It makes only the calls that signal-safety(7) lists, and writes only to memory that is mapped.
void on_crash(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  // A forked child isn't the worker, so the handler does nothing in it.
  if (::getpid() == crashes.pid && !crashes.taken.test_and_set()) {
    say(signal, *info);
    const int file = ::open(crashes.file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file >= 0) {
      const CrashHeaderV1 header = header_of(signal, *info, *static_cast<ucontext_t*>(context));
      write_all(file, &header, sizeof header);
      write_stack(file, header);
      write_maps(file);
      ::close(file);
    }
  }
  ::signal(signal, SIG_DFL);
  // When this handler returns, a fault happens again and then ends the process. A signal that was
  // sent doesn't come again, so it is raised here.
  if (info->si_code <= 0) ::raise(signal);
  errno = error;
}

void install_handlers() {
  const stack_t stack{.ss_sp = main_stack, .ss_flags = 0, .ss_size = sizeof main_stack};
  ::sigaltstack(&stack, nullptr);
  for (const int signal : kCrashSignals) {
    struct sigaction present {};
    if (::sigaction(signal, nullptr, &present) != 0 || present.sa_handler != SIG_DFL) continue;
    struct sigaction action {};
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigaction(signal, &action, nullptr);
  }
}

#else
void install_handlers() {}
#endif

[[noreturn]] void on_terminate() {
  if (const std::exception_ptr thrown = std::current_exception()) {
    crashes.row.error(describe(thrown).message);
    crashes.has_said = true;
  }
  crashes.before();
  std::abort();
}

}  // namespace

void keep_crashes(const std::string& file, const BoardWriter& row) {
  if (file.size() >= sizeof crashes.file) return;  // paths are always shorter
  std::ranges::copy(file, crashes.file);
  crashes.row = row;
  crashes.pid = ::getpid();
  set_check_hook([](std::string_view text) noexcept {
    crashes.row.error(text);
    crashes.has_said = true;
  });
  crashes.before = std::set_terminate(on_terminate);
  install_handlers();
}

}  // namespace weft
