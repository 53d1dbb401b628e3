#pragma once
/// ExecutableMemory: memory with machine code. Its pages are writable first and executable later,
/// but never both.

#include <cstddef>
#include <span>
#include <string>

namespace weft::jit {

class ExecutableMemory {
 public:
  /// Copies `code`. The caller must check refusal() before it uses address().
  explicit ExecutableMemory(std::span<const std::byte> code);
  ~ExecutableMemory();
  ExecutableMemory(const ExecutableMemory&) = delete;
  ExecutableMemory& operator=(const ExecutableMemory&) = delete;

  /// Returns why this machine refuses executable memory, such as "mprotect: Permission denied", or
  /// "" if it doesn't.
  const std::string& refusal() const { return refusal_; }
  const void* address() const { return address_; }

 private:
  void* address_ = nullptr;
  std::size_t bytes_ = 0;
  std::string refusal_;
};

/// Replaces mprotect() by `protect`, for tests. Null restores mprotect().
void set_protect(int (*protect)(void* address, std::size_t bytes, int protection));

}  // namespace weft::jit
