#include "actors/protocol/failure_text.hpp"

#include <csignal>
#include <cstring>

#include <fmt/format.h>

namespace weft {
namespace {

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("signal {} (SIG{})", signal, name)
                         : fmt::format("signal {}", signal);
}

}  // namespace

std::string describe(const Whereabouts& where) {
  return fmt::format(" at step {}{}", where.step,
                     where.collective.empty() ? "" : ", in " + where.collective);
}

std::string describe(const ProcessEnded& ended) {
  if (ended.status_taken) {
    return "ended, and this program took its exit status (it waits for all its children, or "
           "ignores SIGCHLD)";
  }
  return ended.signal != 0 ? "was killed by " + signal_name(ended.signal)
                           : fmt::format("exited with code {}", ended.exit_code);
}

std::string out_of_memory_advice(const ProcessEnded& ended) {
  if (ended.signal != SIGKILL || !ended.out_of_memory) return {};
  return "; meanwhile the kernel killed a process because memory ran out (oom_kill in "
         "/proc/vmstat): give the job more memory, or make a worker use less";
}

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? text : text.substr(begin);
}

}  // namespace weft
