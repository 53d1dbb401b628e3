#pragma once
/// Stacks of another process's threads, with names and source lines where the system permits it.
///
/// A thread is held only while its registers and the top of its stack are copied, for less than a
/// millisecond; unwinding and names come afterwards. A stopped process stays stopped.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weft {

struct StackFrame {
  std::string function{};  ///< demangled; "?" where nobody knows it
  std::string file{};      ///< the source's name without its folder; empty: unknown
  int line = 0;
  std::string object{};  ///< name of the program or library that it is in
};

struct ThreadStack {
  int tid = 0;
  std::vector<StackFrame> frames{};  ///< innermost first
  std::string why_not{};             ///< why there are no frames
};

/// Of one process. `tids`: its threads, in the order of the result. Never throws for what the
/// system refuses: that is in `why_not`, with what would permit it.
std::vector<ThreadStack> read_stacks(int pid, std::span<const int> tids);

/// The calls of this process that return to these addresses, innermost first; none without libdw.
std::vector<StackFrame> name_calls(std::span<const std::uintptr_t> returns);

/// A thread that is no more, as it was copied.
struct KeptThread {
  int tid = 0;
  std::span<const std::uint64_t> registers{};  ///< of x86-64, in the order of DWARF's numbers
  std::uint64_t stack_begin = 0;
  std::span<const std::byte> stack{};
  std::string maps{};  ///< /proc/PID/maps of its process
};

/// As read_stacks(), of the files that `maps` names.
ThreadStack read_kept_stack(const KeptThread& kept);

}  // namespace weft
