#pragma once
/// HeldThread: copies the registers and the top of the stack of another process's thread, while the
/// thread is held.

#include <sys/user.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weft {

struct HeldThread {
  int tid = 0;
  user_regs_struct registers{};
  std::uint64_t stack_begin = 0;
  std::vector<std::byte> stack{};
  std::string why_not{};  ///< why the thread couldn't be held; "" if it was held

  /// Reads the word at an address from the copied stack or, if it isn't there, from the process as
  /// it is now.
  bool read(int pid, std::uint64_t address, std::uint64_t& word) const;
};

/// Holds the threads of a process one after the other, copies the state of each, and releases it. A
/// thread gets 20 ms to stop; a thread that waits for a device doesn't stop. A temporary thread
/// does the work. When this tracer ends, the kernel also releases threads that stopped too late and
/// are still held.
std::vector<HeldThread> hold_threads(int pid, std::span<const int> tids);

}  // namespace weft
