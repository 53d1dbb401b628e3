#pragma once
/// Limits the memory of single processes with a cgroup of the test's own.

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include <fmt/format.h>

namespace weft::testing {

/// A cgroup with a memory limit, of version 1 or 2.
class MemoryLimit {
 public:
  explicit MemoryLimit(long bytes) {
    for (const auto& [root, file] : {std::pair{"/sys/fs/cgroup", "memory.max"},
                                     std::pair{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}}) {
      folder_ = fmt::format("{}/weft-test-{}", root, ::getpid());
      if (::mkdir(folder_.c_str(), 0755) != 0) continue;
      set_ = write(file, bytes);
      if (set_) return;
      ::rmdir(folder_.c_str());
    }
  }
  ~MemoryLimit() {
    if (set_) ::rmdir(folder_.c_str());
  }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

  /// Returns false if the system doesn't allow tests to set a limit.
  bool is_set() const { return set_; }
  /// Adds a process. Only memory that the process allocates from now on counts.
  bool add(pid_t pid) const { return write("cgroup.procs", pid); }

 private:
  bool write(const char* file, long value) const {
    std::fstream out(fmt::format("{}/{}", folder_, file));  // doesn't create the file
    return static_cast<bool>(out << value << std::flush);
  }

  std::string folder_;
  bool set_ = false;
};

}  // namespace weft::testing
