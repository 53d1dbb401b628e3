#pragma once
/// The registers of a thread of another process, and the top of its stack, copied while it is held.

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
  std::string why_not{};  ///< why it couldn't be held; empty: it was

  /// The word at an address of the copied stack, or of the process as it is now.
  bool read(int pid, std::uint64_t address, std::uint64_t& word) const;
};

/// Holds the threads of a process, one after the other, and lets them go again. Each is given 20 ms
/// to come; one in a device doesn't. This is done on a thread that ends then: the kernel lets go
/// what a tracer that ends still has, a thread that comes later or has died meanwhile.
std::vector<HeldThread> hold_threads(int pid, std::span<const int> tids);

}  // namespace weft
