#include "actors/process/stack_dump.hpp"

#include <cxxabi.h>
#include <execinfo.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr int kFrameCountMax = 64;
constexpr std::string_view kTitle = "the stack of this thread, innermost call first:\n";
/// The number of bytes at the end of the file in which the last stack is searched.
constexpr std::streamoff kTailMax = 1 << 16;
int dump_file = -1;

void dump(int) {
  const int error = errno;
  void* frames[kFrameCountMax];
  const int count = ::backtrace(frames, kFrameCountMax);
  [[maybe_unused]] const ssize_t written = ::write(dump_file, kTitle.data(), kTitle.size());
  ::backtrace_symbols_fd(frames, count, dump_file);
  errno = error;
}

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

std::string tail_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return {};
  in.seekg(std::max<std::streamoff>(in.tellg() - std::streampos(kTailMax), 0));
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

void dump_stack_on_sigquit(const std::string& file) {
  dump_file = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (dump_file < 0) fail(Errc::io, "can't open {}: {}", file, std::strerror(errno));
  void* frame = nullptr;
  ::backtrace(&frame, 1);  // the first call loads a library, which must not happen in a handler
  struct sigaction action {};
  action.sa_handler = dump;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGQUIT, &action, nullptr);
}

/// Converts "/path/app(_ZN3app5trainEv+0x12)[0x55d0]" to "app::train()+0x12 in app". Newer versions
/// of glibc write a space before the address.
std::string readable_call(std::string_view line) {
  const auto open = line.rfind('(');
  const auto close = std::min(line.find(")[0x", open == line.npos ? 0 : open),
                              line.find(") [0x", open == line.npos ? 0 : open));
  if (open == line.npos || close == line.npos) return {};
  const std::string_view path = line.substr(0, open);
  const std::string_view inside = line.substr(open + 1, close - open - 1);
  const auto plus = inside.rfind('+');
  const std::string name =
      plus == 0 || plus == inside.npos ? "?" : demangled(std::string(inside.substr(0, plus)));
  return name + std::string(plus == inside.npos ? "" : inside.substr(plus)) + " in " +
         std::string(path.substr(path.rfind('/') + 1));
}

std::string last_stack(const std::string& file) {
  const std::string text = tail_of(file);
  const auto title = text.rfind(kTitle);
  if (title == text.npos) return {};
  std::istringstream lines(text.substr(title + kTitle.size()));
  std::string calls;
  for (std::string line; std::getline(lines, line);) {
    const std::string call = readable_call(line);
    if (call.empty()) break;
    calls += (calls.empty() ? "  " : "\n  ") + call;
  }
  return calls;
}

}  // namespace weft
