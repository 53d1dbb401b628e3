#pragma once
/// Lines: what a program prints, line by line: tagged, timed, filtered, coloured, kept in files.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct LineOptions {
  bool tags = false;        ///< [program] before the program's own lines
  std::vector<int> only{};  ///< workers whose lines are shown; empty: all
  bool timestamps = false;
  bool colours = false;
  bool whole = false;  ///< shows no line before its end
};

/// A worker's line begins with "[worker 2] ", as the trainer writes it. All other lines are the
/// program's own, and are shown whichever workers' are.
class Lines {
 public:
  /// Takes each whole line as it came: the worker or -1, and the text without its tag.
  using Keep = std::function<void(int worker, std::string_view line)>;
  /// The time in front of a line, as "12:30:01.250 ".
  using Now = std::function<std::string()>;

  Lines(LineOptions options, Now now, Keep keep)
      : options_(std::move(options)), now_(std::move(now)), keep_(std::move(keep)) {}

  /// What to show of the next piece of output. Unless whole lines are asked for, the beginning of
  /// a line is shown at once: it may be a question.
  std::string take(std::string_view text);
  /// What is left of a line that nothing has ended.
  std::string finish();
  /// Whether the last thing shown was a whole line.
  bool at_line_start() const { return shown_ == 0; }

 private:
  std::string show(std::string_view line) const;

  LineOptions options_;
  Now now_;
  Keep keep_;
  std::string line_;       // that has come so far
  std::size_t shown_ = 0;  // of it
};

}  // namespace weft
