#pragma once
/// Screen: shows output and, below it, one line of status on the same terminal.

#include <string>
#include <string_view>

namespace weft {

/// Computes what to write to the terminal. The status line is erased before output and drawn again
/// after it. If the output ends within a line, the status line isn't drawn, because the cursor must
/// stay at the end of the output.
class Screen {
 public:
  std::string print(std::string_view output) {
    if (output.empty()) return {};
    std::string text = erase();
    text += output;
    in_line_ = output.back() != '\n';
    return text + draw();
  }
  /// Sets the status line; "" shows none. Returns the text to write.
  std::string status(std::string_view line) {
    if (line == status_) return {};
    std::string text = erase();
    status_ = line;
    return text + draw();
  }

 private:
  std::string erase() {
    if (!drawn_) return {};
    drawn_ = false;
    return "\r\x1b[K";
  }
  std::string draw() {
    if (in_line_ || status_.empty()) return {};
    drawn_ = true;
    return status_;
  }

  std::string status_;
  bool drawn_ = false;
  bool in_line_ = false;
};

}  // namespace weft
