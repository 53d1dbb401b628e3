#include "inspect/process/futex_wait.hpp"

#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <string>

#include <fmt/format.h>

namespace weft {

FutexWait read_futex_wait(int tid, std::span<const int> tids) {
  std::ifstream file(fmt::format("/proc/{}/syscall", tid));
  long number = -1;
  std::uint64_t address = 0;
  if (!(file >> number >> std::hex >> address) || number != SYS_futex) return {};
  // struct __pthread_mutex_s: lock, count, owner, users.
  std::array<int, 4> words{};
  iovec to{words.data(), sizeof words};
  iovec from{reinterpret_cast<void*>(address), sizeof words};  // NOLINT: another process's
  if (::process_vm_readv(tid, &to, 1, &from, 1, 0) != sizeof words) return {};
  const auto is_thread = [&](int id) { return id != 0 && std::ranges::count(tids, id) != 0; };
  if (is_thread(words[0]) && words[0] != tid) return {.joins = words[0]};
  constexpr int kLockedWithWaiters = 2;
  if (words[0] == kLockedWithWaiters && is_thread(words[2])) return {.mutex_owner = words[2]};
  return {};
}

}  // namespace weft
