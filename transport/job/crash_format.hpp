#pragma once
/// The format of RUN/crash-worker-N, which a worker writes when a signal such as SIGSEGV ends it
/// (native byte order, little-endian hosts):
///
///   crash = CrashHeaderV1 stack{stack_bytes} maps     maps: /proc/PID/maps, to the end of the file
///
/// The signal handler only copies memory. The program that reads the file unwinds the stack, with
/// the files that `maps` names. A change of the format needs a new version.

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace weft {

struct CrashHeaderV1 {
  static constexpr std::uint64_t kMagic = 0x3173'7263'7466'6577;  // "weftcrs1"
  static constexpr int kRegisterCount = 17;
  static constexpr std::uint64_t kStackBytesMax = 64 << 10;

  std::uint64_t magic;
  std::int32_t pid;
  std::int32_t tid;
  std::int32_t signal;
  std::int32_t code;      ///< si_code
  std::uint64_t address;  ///< si_addr, for a fault
  /// The registers of x86-64, in the order of DWARF's numbers.
  std::uint64_t registers[kRegisterCount];
  std::uint64_t stack_begin;
  std::uint64_t stack_bytes;  ///< at most kStackBytesMax; pages that couldn't be read are zeros
};
static_assert(std::is_trivially_copyable_v<CrashHeaderV1>);
static_assert(sizeof(CrashHeaderV1) == 184);

std::string crash_file(const std::string& run_dir, int worker);

}  // namespace weft
