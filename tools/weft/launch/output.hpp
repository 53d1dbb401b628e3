#pragma once
/// Output: shows the output of a launched program, and a progress line below it.

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

/// Writes lines to a folder: one file for each worker, and one for the program itself.
class LineLog {
 public:
  /// Makes the folder. Throws io, naming the folder.
  explicit LineLog(std::string folder);
  void add(int worker, const std::string& time, std::string_view line);

 private:
  std::string folder_;
  std::map<int, std::ofstream> files_;  // by worker; -1: the program
};

/// The output streams of a program. If no option concerns a stream, the program writes directly to
/// it, as it would without a launcher.
class Output {
 public:
  /// Throws io if the folder of --log-dir can't be made.
  explicit Output(const LaunchOptions& options);

  /// Opens the channels for one start of the program. Returns the ends that the program gets.
  Replacements open();
  /// Must be called after the program has started.
  void started();
  /// Returns whether there is a terminal for status() and this process is in its foreground.
  bool has_status() const;
  /// Sets the line below the output; "": none.
  void status(std::string_view line);
  /// Returns the number of columns of the terminal.
  std::size_t width() const;
  void resized() const;

  void add_to(std::vector<pollfd>& waits) const;
  /// Passes on the available output.
  void serve();
  /// Passes on all remaining output of the ended program, and removes the status line.
  void finish();
  /// Ends a line that the program has begun on stderr's terminal, such as a progress bar, so that
  /// the next message has a line of its own.
  void end_line();

 private:
  struct Stream {
    std::unique_ptr<ProgramStream> channel;
    std::unique_ptr<Lines> lines;
    Outlet outlet;
    bool has_screen;
    bool in_line = false;  ///< the output shown so far ends within a line
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
