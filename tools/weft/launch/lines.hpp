#pragma once
/// Lines: processes a program's output line by line. Lines can be tagged, timed, filtered, colored
/// and kept in files.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct LineOptions {
  bool tags = false;        ///< writes [program] before the program's own lines
  std::vector<int> only{};  ///< workers whose lines are shown; empty: all
  bool timestamps = false;
  bool colours = false;
  bool whole = false;  ///< shows a line only when it is complete
};

/// Processes output. A line of a worker begins with "[worker 2] ", which the trainer writes. All
/// other lines are the program's own; they are shown whichever workers are selected.
class Lines {
 public:
  /// Receives each complete line: the worker, or -1 for the program, and the text without its tag.
  using Keep = std::function<void(int worker, std::string_view line)>;
  /// Returns the time to put before a line, such as "12:30:01.250 ".
  using Now = std::function<std::string()>;

  Lines(LineOptions options, Now now, Keep keep)
      : options_(std::move(options)), now_(std::move(now)), keep_(std::move(keep)) {}

  /// Takes the next piece of output and returns the text to show. Unless `whole` is set, this
  /// includes the beginning of an incomplete line, because it may be a question to the user.
  std::string take(std::string_view text);
  /// Returns the rest of the last line, if it has no newline.
  std::string finish();
  /// Returns whether the output shown so far ends with a complete line.
  bool at_line_start() const { return shown_ == 0; }

 private:
  std::string show(std::string_view line) const;

  LineOptions options_;
  Now now_;
  Keep keep_;
  std::string line_;       // the part received so far
  std::size_t shown_ = 0;  // how much of line_ was shown
};

}  // namespace weft
