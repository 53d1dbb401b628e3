#pragma once
/// Starts the processes of a run, and provides the socket to which they connect.

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/collectives/protocol.hpp"

namespace weft::bench {

/// Makes SIGINT, SIGTERM and SIGHUP end every wait for a rank with an error. Then destructors run
/// and remove everything that the run has made.
void catch_signals();

/// Waits until no other run of the bench exists, because two simultaneous runs would disturb each
/// other.
class OnlyRun {
 public:
  /// Waits for the end of other runs. Throws io, or cancelled after a signal.
  OnlyRun();
  ~OnlyRun();
  OnlyRun(const OnlyRun&) = delete;
  OnlyRun& operator=(const OnlyRun&) = delete;

 private:
  int descriptor_;
};

/// A child process that ends with this process. Its output goes to stderr.
class Process {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;
  /// Starts the command. Throws io.
  Process(const std::vector<std::string>& command, const Environment& environment);
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Process& operator=(Process&&) = delete;
  ~Process() { stop({}); }

  bool ended();
  /// Waits up to `grace` for the child to end by itself. Then sends SIGTERM, and two seconds later
  /// SIGKILL.
  void stop(std::chrono::milliseconds grace);

 private:
  bool ends_within(std::chrono::milliseconds time);

  pid_t pid_;
};

/// A folder with the socket to which all ranks connect. The destructor removes it.
class Meeting {
 public:
  /// Makes the folder and the socket. Throws io.
  Meeting();
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  std::string socket_path() const { return folder_ + "/socket"; }
  /// Makes a new folder beside the socket.
  std::string make_folder();
  /// Returns the connection of a rank, or nothing if no rank connects within `timeout`. Throws
  /// cancelled after a signal.
  std::optional<Connection> accept(std::chrono::milliseconds timeout);

 private:
  std::string folder_;
  int num_folders_ = 0;
  int descriptor_;
};

}  // namespace weft::bench
