#pragma once
/// ProgramStream: a stream of a program that passes through this process.

#include <string>
#include <vector>

#include "tools/weft/launch/launched_program.hpp"

namespace weft {

/// Whether both descriptors are of one file: what is written to them has an order.
bool is_same_file(int a, int b);

/// Between the program and the file of this process that it would have written to: a pseudo
/// terminal where that is a terminal, so that the program prints as it would there, else a pipe.
class ProgramStream {
 public:
  /// `streams`: of stdout (1) and stderr (2), those that it replaces; both have to be one file.
  /// Throws io.
  explicit ProgramStream(std::vector<int> streams);
  ~ProgramStream();
  ProgramStream(const ProgramStream&) = delete;
  ProgramStream& operator=(const ProgramStream&) = delete;

  /// For the program's start.
  void add_to(Replacements& replacements) const;
  /// To be called after that: the end of the stream is the program's to decide.
  void let_go();

  /// -1 after the end.
  int fd() const { return reader_; }
  /// Appends what has come, at most 64 KiB; false if there is nothing now.
  bool read(std::string& text);
  /// After the terminal's size has changed.
  void take_size() const;

 private:
  void open_terminal();

  std::vector<int> streams_;
  int reader_ = -1;
  int writer_ = -1;
};

}  // namespace weft
