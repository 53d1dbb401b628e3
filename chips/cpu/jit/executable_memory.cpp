#include "chips/cpu/jit/executable_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace weft::jit {
namespace {

using Protect = int (*)(void*, std::size_t, int);

std::atomic<Protect> protect_in_use{&::mprotect};

std::string failed(const char* call) {
  return std::string(call) + ": " + std::generic_category().message(errno);
}

}  // namespace

void set_protect(Protect protect) { protect_in_use = protect == nullptr ? &::mprotect : protect; }

ExecutableMemory::ExecutableMemory(std::span<const std::byte> code) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  bytes_ = (code.size() + page - 1) / page * page;
  void* memory =
      ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    refusal_ = failed("mmap");
    return;
  }
  address_ = memory;
  std::memcpy(memory, code.data(), code.size());
  if (protect_in_use.load()(memory, bytes_, PROT_READ | PROT_EXEC) != 0) {
    refusal_ = failed("mprotect");
  }
}

ExecutableMemory::~ExecutableMemory() {
  if (address_ != nullptr) ::munmap(address_, bytes_);
}

}  // namespace weft::jit
