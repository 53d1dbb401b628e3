#pragma once
/// HostPipe: a running `weft inspect --raw` on another host, with which this process talks through
/// its stdin and stdout.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inspect/hosts/merge.hpp"
#include "inspect/hosts/raw_answer.hpp"

namespace weft {

/// Makes one request at a time. Only one thread may use a HostPipe.
class HostPipe {
 public:
  /// Starts a command. The first of `words` is the program's name. Throws io.
  explicit HostPipe(const std::vector<std::string>& words);
  /// Kills the command.
  ~HostPipe();
  HostPipe(const HostPipe&) = delete;
  HostPipe& operator=(const HostPipe&) = delete;

  /// Sends the request, unless an earlier request isn't answered yet.
  void ask(const RawRequest& request);
  bool is_asked() const { return asked_.has_value(); }
  bool has_answered() const { return shift_.has_value(); }
  /// Returns the descriptor that becomes readable when take() has something to read.
  int fd() const { return output_; }
  /// Reads what has come, without waiting. Returns the answer once it is complete, with times
  /// converted to this machine's clocks. If the command has ended, throws unavailable with what the
  /// command wrote to stderr. Also throws the errors of take_raw_answer().
  std::optional<Snapshot> take();
  /// Returns by how many seconds the converted times may be wrong: half of the time that the
  /// fastest answer took.
  double clock_error_s() const { return error_s_; }

 private:
  struct Asked {
    SnapshotParts parts;
    std::int64_t boottime_ns = 0;
    std::int64_t monotonic_ns = 0;
  };
  void fail_ended();
  void compare_clocks(const RawAnswer& answer);

  pid_t pid_ = -1;
  int input_ = -1;  ///< a socket, because a write to a pipe without a reader would raise SIGPIPE
  int output_ = -1;
  int errors_ = -1;
  std::string bytes_;
  std::string said_;  ///< what the command wrote to stderr
  std::optional<Asked> asked_;
  std::optional<ClockShift> shift_;
  double error_s_ = 0;
};

}  // namespace weft
