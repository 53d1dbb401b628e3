#pragma once
/// ExecutableMemory: machine code, written before it may be run and never after.

#include <cstddef>
#include <span>
#include <string>

namespace weft::jit {

class ExecutableMemory {
 public:
  /// A copy of `code`. Check refusal() before address().
  explicit ExecutableMemory(std::span<const std::byte> code);
  ~ExecutableMemory();
  ExecutableMemory(const ExecutableMemory&) = delete;
  ExecutableMemory& operator=(const ExecutableMemory&) = delete;

  /// Why this machine gives none: "mprotect: Permission denied"; "" if it has.
  const std::string& refusal() const { return refusal_; }
  const void* address() const { return address_; }

 private:
  void* address_ = nullptr;
  std::size_t bytes_ = 0;
  std::string refusal_;
};

/// In place of mprotect(), for tests; null: mprotect() again.
void set_protect(int (*protect)(void* address, std::size_t bytes, int protection));

}  // namespace weft::jit
