#pragma once
/// ExecutableMemory: machine code. Its pages are writable before they are executable, and never
/// afterwards.

#include <cstddef>
#include <span>
#include <string>

namespace weft::jit {

class ExecutableMemory {
 public:
  /// Copies `code`. Check refusal() before address().
  explicit ExecutableMemory(std::span<const std::byte> code);
  ~ExecutableMemory();
  ExecutableMemory(const ExecutableMemory&) = delete;
  ExecutableMemory& operator=(const ExecutableMemory&) = delete;

  /// Returns why this machine refuses executable memory: "mprotect: Permission denied"; "" if it
  /// doesn't.
  const std::string& refusal() const { return refusal_; }
  const void* address() const { return address_; }

 private:
  void* address_ = nullptr;
  std::size_t bytes_ = 0;
  std::string refusal_;
};

/// Replaces mprotect(), for tests. Null restores it.
void set_protect(int (*protect)(void* address, std::size_t bytes, int protection));

}  // namespace weft::jit
