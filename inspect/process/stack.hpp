#pragma once
/// Stack: reads the stacks of another process's threads, with names and source lines if the system
/// permits it.
///
/// A thread is held only while its registers and the top of its stack are copied, for less than a
/// millisecond; unwinding and naming come afterwards. A stopped process stays stopped.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weft {

struct StackFrame {
  std::string function{};  ///< demangled; "?" if unknown
  std::string file{};      ///< name of the source file without its folder; empty if unknown
  int line = 0;
  std::string object{};  ///< name of the program or library with the function
};

struct ThreadStack {
  int tid = 0;
  std::vector<StackFrame> frames{};  ///< the innermost frame comes first
  std::string why_not{};             ///< why there are no frames
};

/// Reads the stacks of one process. `tids` are its threads; the result has the same order. If the
/// system refuses, doesn't throw: `why_not` then says so, and what would permit it.
std::vector<ThreadStack> read_stacks(int pid, std::span<const int> tids);

/// Returns the calls of this process that return to these addresses, the innermost first; none
/// without libdw.
std::vector<StackFrame> name_calls(std::span<const std::uintptr_t> returns);

/// The copied state of a thread that no longer exists.
struct KeptThread {
  int tid = 0;
  std::span<const std::uint64_t> registers{};  ///< x86-64 registers in DWARF's order
  std::uint64_t stack_begin = 0;
  std::span<const std::byte> stack{};
  std::string maps{};  ///< /proc/PID/maps of the thread's process
};

/// Returns what read_stacks() returns, for a copied thread. Takes names and lines from the files
/// that `maps` lists.
ThreadStack read_kept_stack(const KeptThread& kept);

}  // namespace weft
