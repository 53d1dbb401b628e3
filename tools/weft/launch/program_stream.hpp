#pragma once
/// ProgramStream: a stream of a program that passes through this process.

#include <string>
#include <vector>

#include "tools/weft/launch/launched_program.hpp"

namespace weft {

/// Returns whether both descriptors belong to the same file. The order of data written to them is
/// then defined.
bool is_same_file(int a, int b);

/// A channel from the program to a file of this process: the stream to which the program would have
/// written without a launcher. If that file is a terminal, the channel is a pseudo terminal, so
/// that the program prints the same as it would there. Otherwise it is a pipe.
class ProgramStream {
 public:
  /// `streams` are the streams that the channel replaces: stdout (1), stderr (2) or both. Both must
  /// belong to the same file. Throws io.
  explicit ProgramStream(std::vector<int> streams);
  ~ProgramStream();
  ProgramStream(const ProgramStream&) = delete;
  ProgramStream& operator=(const ProgramStream&) = delete;

  /// Adds the program's end of the channel, which the program gets at its start.
  void add_to(Replacements& replacements) const;
  /// Must be called after the program has started. Closes this process's copy of the program's end
  /// of the channel, so that the stream ends when the program closes its own copy.
  void let_go();

  /// Returns the descriptor to read from; -1 after the end of the stream.
  int fd() const { return reader_; }
  /// Appends available output, at most 64 KiB. Returns false if there is none now.
  bool read(std::string& text);
  /// Copies the terminal's size to the pseudo terminal. Must be called after the terminal's size
  /// has changed.
  void take_size() const;

 private:
  void open_terminal();

  std::vector<int> streams_;
  int reader_ = -1;
  int writer_ = -1;
};

}  // namespace weft
