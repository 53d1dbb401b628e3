#include "transport/job/job_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include <weft/tensor/error.hpp>

#include "data/files/file_bytes.hpp"
#include "transport/format/run_card.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/job/job_record.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// The length of "/<id>/control", with the terminating zero.
constexpr std::size_t kPlaceInRoot = 1 + kJobIdLength + 8 + 1;

bool is_private_folder(const std::string& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
         found.st_uid == ::geteuid() && (found.st_mode & 077) == 0;
}

std::string root_in_tmp() { return fmt::format("/tmp/weft-{}", ::geteuid()); }

/// Returns the control root in $XDG_RUNTIME_DIR; "" if the variable isn't set to an absolute path.
std::string root_in_runtime() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  return runtime != nullptr && *runtime == '/' ? std::string(runtime) + "/weft" : "";
}

struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

bool is_job_id(std::string_view text) noexcept {
  return text.size() == kJobIdLength && text.find_first_not_of("0123456789abcdef") == text.npos;
}

void make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    fail(Errc::io, "can't make the control folder {}: {}", path, std::strerror(errno));
  }
  if (is_private_folder(path)) return;
  fail(Errc::io,
       "the control folder {} is not a folder of this user with mode 0700: remove it, or set "
       "XDG_RUNTIME_DIR to a folder of your own",
       path);
}

std::string make_control_root() {
  const std::string runtime = root_in_runtime();
  if (!runtime.empty() && runtime.size() + kPlaceInRoot < sizeof(sockaddr_un::sun_path)) {
    try {
      make_private_folder(runtime);
      return runtime;
    } catch (const Error&) {
    }
  }
  make_private_folder(root_in_tmp());
  return root_in_tmp();
}

std::vector<std::string> control_roots() {
  std::vector<std::string> roots;
  for (const std::string& root :
       {root_in_runtime(), fmt::format("/run/user/{}/weft", ::geteuid()), root_in_tmp()}) {
    std::error_code ignored;
    const bool known = std::ranges::any_of(
        roots, [&](const std::string& other) { return fs::equivalent(root, other, ignored); });
    if (is_private_folder(root) && !known) roots.push_back(root);
  }
  return roots;
}

bool is_control_root(const std::string& path) { return is_private_folder(path); }

std::vector<std::string> jobs_in(const std::string& root) {
  std::vector<std::string> jobs;
  std::error_code unreadable;
  for (fs::directory_iterator entry(root, unreadable), end; !unreadable && entry != end;
       entry.increment(unreadable)) {
    const fs::path name = entry->path().filename();
    if (is_job_id(name.stem().string()) && (name.extension() == ".lock" || !name.has_extension())) {
      jobs.push_back(name.stem().string());
    }
  }
  std::ranges::sort(jobs);
  jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
  return jobs;
}

JobLock JobLock::open(const std::string& path, int flags) {
  JobLock opened;
  opened.descriptor_ = ::open(path.c_str(), flags | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
  const bool may_be_absent = (flags & O_CREAT) == 0 && errno == ENOENT;
  if (opened.descriptor_ < 0 && !may_be_absent) {
    fail(Errc::io, "can't open the lock {}: {}", path, std::strerror(errno));
  }
  if (opened.descriptor_ >= 0) opened.own_ = ParentOnly(opened.descriptor_);
  return opened;
}

JobLock JobLock::lock(const std::string& path, int command) {
  for (;;) {
    JobLock held = open(path, O_CREAT);
    struct flock whole = whole_file();
    if (::fcntl(held.descriptor_, command, &whole) != 0) return {};
    struct stat found {};
    // A sweep may have removed the file between open() and the lock. Then this tries again.
    if (::fstat(held.descriptor_, &found) == 0 && found.st_nlink > 0) return held;
  }
}

JobLock JobLock::take(const std::string& root, const std::string& job) {
  return lock(lock_in(root, job), F_OFD_SETLKW);
}

JobLock JobLock::try_take(const std::string& root, const std::string& job) {
  return lock(lock_in(root, job), F_OFD_SETLK);
}

bool JobLock::is_held(const std::string& root, const std::string& job) {
  const JobLock lock = open(lock_in(root, job), 0);
  struct flock whole = whole_file();
  return lock && (::fcntl(lock.descriptor_, F_OFD_GETLK, &whole) != 0 || whole.l_type != F_UNLCK);
}

JobLock::JobLock(JobLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), own_(std::move(other.own_)) {}

JobLock& JobLock::operator=(JobLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(own_, other.own_);
  return *this;
}

JobLock::~JobLock() {
  own_ = {};
  if (descriptor_ >= 0) ::close(descriptor_);
}

double kept_for_s(const std::string& root, const std::string& job) {
  double keep_s = 0;
  try {
    keep_s = decode_run_card(read_file_bytes(run_card_in(root, job), kRunCardBytesMax))
                 .keep_for_rescue_s;
  } catch (const Error&) {
    return 0;  // there is no card, or it can't be read
  }
  if (keep_s == 0) return 0;
  // The first call makes the file `dead`, whose modification time is then the time of that call.
  const std::string mark = folder_in(root, job) + "/dead";
  const int made = ::open(mark.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (made >= 0) ::close(made);
  struct stat found {};
  if (::lstat(mark.c_str(), &found) != 0) return 0;
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  const double since =
      static_cast<double>(found.st_mtim.tv_sec) + static_cast<double>(found.st_mtim.tv_nsec) / 1e9;
  return std::clamp(keep_s - (now.count() - since), 0.0, keep_s);
}

void remove_job(const std::string& root, const std::string& job) {
  keep_record(job);
  JobMemory::remove(job);
  std::error_code ignored;
  fs::remove_all(folder_in(root, job), ignored);
  fs::remove(lock_in(root, job), ignored);
}

void sweep_dead_jobs(const std::string& root) {
  for (const std::string& job : jobs_in(root)) {
    // Without a lock file, no process can have the lock.
    if (::access(lock_in(root, job).c_str(), F_OK) != 0) continue;
    try {
      // This takes no lock of a job that is kept, because a rescue may need that lock at any time.
      if (JobLock::is_held(root, job) || kept_for_s(root, job) > 0) continue;
      const JobLock lock = JobLock::try_take(root, job);
      if (lock && kept_for_s(root, job) == 0) remove_job(root, job);
    } catch (const Error&) {
    }
  }
}

}  // namespace weft
