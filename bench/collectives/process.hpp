#pragma once
/// The processes of a run, and the place where they meet.

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/collectives/protocol.hpp"

namespace weft::bench {

/// From now on SIGINT, SIGTERM and SIGHUP end every wait for a rank with an error, so that what the
/// run has made is removed.
void catch_signals();

/// Two runs at a time would measure each other: waits until this is the only one.
class OnlyRun {
 public:
  /// Throws io; cancelled after a signal.
  OnlyRun();
  ~OnlyRun();
  OnlyRun(const OnlyRun&) = delete;
  OnlyRun& operator=(const OnlyRun&) = delete;

 private:
  int descriptor_;
};

/// A child that ends with this process. Its output goes to stderr.
class Process {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;
  /// Throws io.
  Process(const std::vector<std::string>& command, const Environment& environment);
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Process& operator=(Process&&) = delete;
  ~Process() { stop({}); }

  bool ended();
  /// It has `grace` to end by itself, and two seconds after SIGTERM; then it is killed.
  void stop(std::chrono::milliseconds grace);

 private:
  bool ends_within(std::chrono::milliseconds time);

  pid_t pid_;
};

/// A folder with the socket that all ranks connect to; removed at the end.
class Meeting {
 public:
  /// Throws io.
  Meeting();
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  std::string socket_path() const { return folder_ + "/socket"; }
  /// A new folder in it.
  std::string make_folder();
  /// None: nobody came. Throws cancelled after a signal.
  std::optional<Connection> accept(std::chrono::milliseconds timeout);

 private:
  std::string folder_;
  int num_folders_ = 0;
  int descriptor_;
};

}  // namespace weft::bench
