#pragma once
/// Gives a test its own small /dev/shm.

#include <gtest/gtest.h>

#include <dirent.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "tests/support/child_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::testing {

inline constexpr std::string_view kNoNamespace = "no right to mount in a namespace of its own: ";

/// Moves this process to a mount namespace in which `folder` is a file system of its own with these
/// mount options, such as "size=1m".
inline void mount_own(const std::string& folder, const std::string& options) {
  const auto write = [](const char* file, const std::string& text) { std::ofstream(file) << text; };
  const auto must = [](bool done, const char* what) {
    if (!done)
      throw std::runtime_error(fmt::format("{}{}: {}", kNoNamespace, what, strerror(errno)));
  };
  const std::string same_user = fmt::format("{0} {0} 1", geteuid());
  const std::string same_group = fmt::format("{0} {0} 1", getegid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) {
    write("/proc/self/setgroups", "deny");
    write("/proc/self/uid_map", same_user);
    write("/proc/self/gid_map", same_group);
  } else {
    must(unshare(CLONE_NEWNS) == 0, "unshare");
  }
  must(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "mount --make-rprivate");
  must(mount("tmpfs", folder.c_str(), "tmpfs", 0, (options + ",mode=1777").c_str()) == 0, "mount");
}

/// Runs `body` with its expectations in a fork that has its own /dev/shm, and expects that `body`
/// leaves no file there. Skips the test if the system doesn't allow namespaces. The locks of jobs
/// also get a folder of their own: a job that begins removes the lock of a dead job, and without
/// that lock no process would remove the dead job's memory in the system's /dev/shm.
inline void in_own_shm(const std::string& options, const std::function<void()>& body) {
  SCOPED_TRACE("/dev/shm with " + options);
  const TemporaryFolder locks;
  ChildProcess child([&] {
    mount_own("/dev/shm", options);
    ::setenv("XDG_RUNTIME_DIR", locks.path().c_str(), 1);
    body();
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/dev/shm"), closedir);
    while (const dirent* entry = readdir(folder.get())) {
      if (entry->d_name[0] != '.') ADD_FAILURE() << "left in /dev/shm: " << entry->d_name;
    }
    if (::testing::Test::HasFailure()) throw std::runtime_error("a failure in the fork, see above");
  });
  const std::string text = child.join();
  if (text.starts_with(kNoNamespace)) GTEST_SKIP() << text;
  EXPECT_EQ(text, "");
}

}  // namespace weft::testing
