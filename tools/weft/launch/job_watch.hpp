#pragma once
/// JobWatch: finds the job of a program, and reads the job's progress from its board.

#include <sys/types.h>

#include <optional>
#include <string>

#include "tools/weft/launch/progress.hpp"
#include "transport/board/board.hpp"

namespace weft {

class JobWatch {
 public:
  explicit JobWatch(pid_t program) : program_(program) {}

  /// Returns the present state of the job; nothing if neither the program nor a process that it has
  /// started runs a job.
  std::optional<JobGlance> look();

 private:
  bool find();

  pid_t program_;
  std::optional<Board> board_;
};

}  // namespace weft
