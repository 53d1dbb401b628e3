#pragma once
/// Output: what a launched program prints, and the progress line below it.

#include <chrono>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <poll.h>

#include "actors/process/outlet.hpp"
#include "tools/weft/launch/lines.hpp"
#include "tools/weft/launch/options.hpp"
#include "tools/weft/launch/program_stream.hpp"
#include "tools/weft/launch/screen.hpp"

namespace weft {

/// Files of lines by writer, in a folder.
class LineLog {
 public:
  /// Makes the folder. Throws io, naming it.
  explicit LineLog(std::string folder);
  void add(int worker, const std::string& time, std::string_view line);

 private:
  std::string folder_;
  std::map<int, std::ofstream> files_;  // by worker; -1: the program
};

/// Streams that no option is about stay the program's own, as if it ran without a launcher.
class Output {
 public:
  /// Throws io for --log-dir.
  explicit Output(const LaunchOptions& options);

  /// Opens channels for one start of the program.
  Replacements open();
  /// After the start.
  void started();
  /// Whether there is a terminal for status(), and this process is in its foreground.
  bool has_status() const;
  /// The line below the output; "" for none.
  void status(std::string_view line);
  /// Columns of the terminal.
  std::size_t width() const;
  void resized() const;

  void add_to(std::vector<pollfd>& waits) const;
  /// Passes on what has come.
  void serve();
  /// Passes on all that the ended program has left, and removes the status line.
  void finish();
  /// Ends a line that the program has begun on stderr's terminal, as by a progress bar: what is
  /// said next has a line of its own.
  void end_line();

 private:
  struct Stream {
    std::unique_ptr<ProgramStream> channel;
    std::unique_ptr<Lines> lines;
    Outlet outlet;
    bool has_screen;
    bool in_line = false;  ///< what was shown last has not ended its line
  };
  void add_stream(std::vector<int> streams);
  bool pass(Stream& stream);
  void show(Stream& stream, const std::string& text);

  const LaunchOptions& options_;
  bool has_progress_;
  std::unique_ptr<LineLog> log_;
  std::vector<std::unique_ptr<Stream>> streams_;
  Screen screen_;
};

}  // namespace weft
