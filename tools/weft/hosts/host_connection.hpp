#pragma once
/// HostConnection: a process, such as ssh, that runs the host's half of `weft launch --hosts` on
/// another machine, and carries its lines.

#include <poll.h>
#include <sys/types.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace weft {

class HostConnection {
 public:
  /// Starts the process. Its output is shown with `tag`, and lines for this program begin with
  /// `mark`. Throws io, and not_found if there is no such command.
  HostConnection(std::string tag, std::vector<std::string> command, std::string mark);
  /// Waits for the end of the process.
  ~HostConnection();
  HostConnection(const HostConnection&) = delete;
  HostConnection& operator=(const HostConnection&) = delete;

  /// Sends a line, or nothing if the host no longer reads.
  void send(const std::string& line);
  /// Ends the program on the host.
  void hang_up();
  /// Ends the process at once, though the host may not have noticed.
  void kill();

  void add_to(std::vector<pollfd>& waits) const;
  /// Shows the lines that have come. Returns the rendezvous file if the host has told it.
  std::optional<std::string> serve();

  const std::string& tag() const { return tag_; }
  /// Returns whether the host's half has started the program. It may have found that there is none.
  bool has_begun() const;
  /// The exit code, once the connection has ended.
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
