#pragma once
/// HostConnection: a process, such as ssh, that runs the host's half of `weft launch --hosts` on
/// another machine. It carries the lines between the two.

#include <poll.h>
#include <sys/types.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace weft {

class HostConnection {
 public:
  /// Starts the process. Its output is shown with `tag` in front. Lines that begin with `mark` are
  /// messages of the host's half. Throws io, or not_found if there is no such command.
  HostConnection(std::string tag, std::vector<std::string> command, std::string mark);
  /// Waits for the end of the process.
  ~HostConnection();
  HostConnection(const HostConnection&) = delete;
  HostConnection& operator=(const HostConnection&) = delete;

  /// Sends a line to the host's half. Does nothing if the host no longer reads.
  void send(const std::string& line);
  /// Closes the host's standard input, upon which the host's half ends the program.
  void hang_up();
  /// Kills the process (ssh) at once; the host may not notice it.
  void kill();

  void add_to(std::vector<pollfd>& waits) const;
  /// Shows the lines that have arrived. Returns the text of the rendezvous file if the host has
  /// sent it.
  std::optional<std::string> serve();

  const std::string& tag() const { return tag_; }
  /// Returns whether the host's half has started the program: not if the program doesn't exist
  /// there.
  bool has_begun() const;
  /// Returns the exit code, once the connection has ended.
  const std::optional<int>& code() const { return code_; }

 private:
  void read(std::size_t i);
  bool take_words(std::string& line, std::optional<std::string>& file);
  void show(std::size_t stream, const std::string& line) const;
  void reap();

  const std::string tag_;
  const std::string mark_;
  pid_t pid_ = -1;
  int in_ = -1;
  std::array<int, 2> out_{-1, -1};
  std::array<std::string, 2> text_;
  bool ready_ = false;
  std::optional<int> code_;
};

}  // namespace weft
