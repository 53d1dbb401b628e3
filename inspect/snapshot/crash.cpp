#include "inspect/snapshot/crash.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include <weft/tensor/error.hpp>

#include "data/files/file_bytes.hpp"
#include "transport/job/crash_format.hpp"

namespace weft {

std::optional<Crash> read_crash(const std::string& run_dir, int worker, int pid) {
  constexpr std::size_t kBytesMax = std::size_t{16} << 20;
  try {
    const std::vector<std::byte> bytes = read_file_bytes(crash_file(run_dir, worker), kBytesMax);
    CrashHeaderV1 header{};
    if (bytes.size() < sizeof header) return {};
    std::memcpy(&header, bytes.data(), sizeof header);
    const bool is_whole = header.magic == CrashHeaderV1::kMagic &&
                          header.stack_bytes <= CrashHeaderV1::kStackBytesMax &&
                          bytes.size() - sizeof header >= header.stack_bytes;
    if (!is_whole || header.pid != pid) return {};
    const auto rest = std::span(bytes).subspan(sizeof header);
    const auto maps = rest.subspan(header.stack_bytes);
    Crash crash{.pid = header.pid, .signal = header.signal};
    crash.stack =
        read_kept_stack({.tid = header.tid,
                         .registers = header.registers,
                         .stack_begin = header.stack_begin,
                         .stack = rest.first(header.stack_bytes),
                         .maps = {reinterpret_cast<const char*>(maps.data()), maps.size()}});
    return crash;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace weft
