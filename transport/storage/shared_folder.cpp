#include "transport/storage/shared_folder.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <weft/tensor/error.hpp>

#include "data/files/file_system.hpp"
#include "transport/memory/namespaces.hpp"
#include "transport/storage/checkpoint_folder.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kPrefix = ".hosts-";

/// Types of file systems that only this machine can write to, by their numbers in statfs().
constexpr std::array<decltype(::statfs::f_type), 7> kOwnFileSystems{
    EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,       BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC,
    TMPFS_MAGIC,      OVERLAYFS_SUPER_MAGIC, 0x2fc12fc1 /* ZFS */};

/// Returns whether only this machine can write to the folder. Returns false if this isn't known.
bool is_of_this_machine(const std::string& folder) {
  struct statfs status {};
  if (::statfs(folder.c_str(), &status) != 0) return false;
  return std::ranges::find(kOwnFileSystems, status.f_type) != kOwnFileSystems.end();
}

std::string mark_path(const std::string& folder, const std::string& job) {
  return folder + "/" + std::string(kPrefix) + job;
}

void make_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) fail(Errc::io, "can't make {}: {}", path, std::strerror(errno));
  ::close(file);
}

/// Returns whether the folder has the job's mark. Lists the folder instead of calling stat(),
/// because a network file system may remember for stat() that a file didn't exist.
bool has_mark(const std::string& folder, const std::string& job) {
  const std::string name = std::string(kPrefix) + job;
  return std::ranges::any_of(posix_file_system().list(folder),
                             [&](const FolderEntry& entry) { return entry.name == name; });
}

}  // namespace

FolderMark::FolderMark(const std::string& folder, const std::string& job)
    : path_(mark_path(folder, job)) {
  make_folders(folder);
  for (const FolderEntry& entry : posix_file_system().list(folder)) {
    if (entry.name.starts_with(kPrefix)) ::unlink((folder + "/" + entry.name).c_str());
  }
  make_file(path_);
}

FolderMark::~FolderMark() { ::unlink(path_.c_str()); }

bool find_mark(const std::string& folder, const std::string& job,
               const std::function<void()>& wait) {
  make_folders(folder);
  const bool is_own = is_of_this_machine(folder);
  const Clock::time_point deadline = Clock::now() + kMarkPatience;
  const std::string own = fmt::format("{}/.looks-{}-{}", folder, machine_name(), ::getpid());
  for (;;) {
    if (!is_own) {
      make_file(own);
      ::unlink(own.c_str());
    }
    if (has_mark(folder, job)) return true;
    if (is_own || Clock::now() >= deadline) return false;
    wait();
  }
}

}  // namespace weft
