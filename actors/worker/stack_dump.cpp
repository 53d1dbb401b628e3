#include <weft/actors/worker/stack_dump.hpp>

#include <execinfo.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include <weft/spmd/error.hpp>

namespace weft {
namespace {

constexpr int kFrameCountMax = 64;
int dump_file = -1;

void dump(int) {
  const int error = errno;
  constexpr std::string_view kTitle = "the stack of this thread, innermost call first:\n";
  void* frames[kFrameCountMax];
  const int count = ::backtrace(frames, kFrameCountMax);
  [[maybe_unused]] const ssize_t written = ::write(dump_file, kTitle.data(), kTitle.size());
  ::backtrace_symbols_fd(frames, count, dump_file);
  errno = error;
}

}  // namespace

void dump_stack_on_sigquit(const std::string& file) {
  dump_file = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (dump_file < 0) fail(Errc::io, "can't open {}: {}", file, std::strerror(errno));
  void* frame = nullptr;
  ::backtrace(&frame, 1);  // its first call loads a library, which a handler must not
  struct sigaction action {};
  action.sa_handler = dump;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGQUIT, &action, nullptr);
}

}  // namespace weft
