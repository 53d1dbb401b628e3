#pragma once
/// Crash: the place of a worker's crash, which the worker's signal handler has recorded
/// (transport/job/crash_format.hpp).

#include <optional>
#include <string>

#include "inspect/process/stack.hpp"

namespace weft {

struct Crash {
  int pid = 0;
  int signal = 0;
  ThreadStack stack{};
};

/// Returns the recorded crash of a worker; nothing if there is no record, or the record belongs to
/// another process than `pid`. Throws nothing: a file that can't be used counts as missing.
std::optional<Crash> read_crash(const std::string& run_dir, int worker, int pid);

}  // namespace weft
