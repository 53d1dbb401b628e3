#pragma once
/// Limits the memory of single processes by a test's own cgroup.

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include <fmt/format.h>

namespace weft::testing {

/// Works with either version of cgroups.
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

  /// Returns false if the system doesn't allow the limit.
  bool is_set() const { return set_; }
  /// Memory that the process gets from now on counts.
  bool add(pid_t pid) const { return write("cgroup.procs", pid); }

 private:
  bool write(const char* file, long value) const {
    std::fstream out(fmt::format("{}/{}", folder_, file));  // opens an existing file only
    return static_cast<bool>(out << value << std::flush);
  }

  std::string folder_;
  bool set_ = false;
};

}  // namespace weft::testing
