#pragma once
/// JobWatch: finds the job of a program, and reads from its board how far it is.

#include <sys/types.h>

#include <optional>
#include <string>

#include "tools/weft/launch/progress.hpp"
#include "transport/board/board.hpp"

namespace weft {

class JobWatch {
 public:
  explicit JobWatch(pid_t program) : program_(program) {}

  /// Nothing while the program, or a process that it has started, has no job that runs.
  std::optional<JobGlance> look();

 private:
  bool find();

  pid_t program_;
  std::optional<Board> board_;
};

}  // namespace weft
