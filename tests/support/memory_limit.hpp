#pragma once
/// A limit on the memory of single processes: a cgroup of a test's own.

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include <fmt/format.h>

namespace weft::testing {

/// Of either version of cgroups.
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

  /// False where the system doesn't allow it.
  bool is_set() const { return set_; }
  /// What it gets from now on counts.
  bool add(pid_t pid) const { return write("cgroup.procs", pid); }

 private:
  bool write(const char* file, long value) const {
    std::fstream out(fmt::format("{}/{}", folder_, file));  // that is there: no file is made
    return static_cast<bool>(out << value << std::flush);
  }

  std::string folder_;
  bool set_ = false;
};

}  // namespace weft::testing
