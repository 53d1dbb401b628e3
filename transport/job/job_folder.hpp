#pragma once
/// Where jobs keep what isn't memory: a control root of this user, and in it for each job a folder
/// and a lock that its trainer holds as long as it lives.
///
///   root/<job>/          mode 0700: the control socket and what goes with it
///   root/<job>.lock      an flock; the kernel drops it with the process, however that ends

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// An id is 128 random bits in hex.
inline constexpr std::size_t kJobIdLength = 32;
bool is_job_id(std::string_view text) noexcept;

/// Makes $XDG_RUNTIME_DIR/weft, or /tmp/weft-<uid> where that can't be (a login without a session
/// has the variable and no folder) or is too long for a socket. Throws io.
std::string make_control_root();

/// Those that are there, are this user's alone, and may be what another process took for its own:
/// also /run/user/<uid>/weft, whatever XDG_RUNTIME_DIR says here.
std::vector<std::string> control_roots();

/// Jobs of which the root has a lock or a folder.
std::vector<std::string> jobs_in(const std::string& root);

/// Makes `path` if it isn't there. Throws io for one that others could enter or own.
void make_private_folder(const std::string& path);

inline std::string folder_in(const std::string& root, const std::string& job) {
  return root + "/" + job;
}
inline std::string lock_in(const std::string& root, const std::string& job) {
  return root + "/" + job + ".lock";
}

/// Owner of a job's lock.
class JobLock {
 public:
  JobLock() = default;  ///< holds nothing
  /// Makes the file and waits for the lock. Throws io.
  static JobLock take(const std::string& root, const std::string& job);
  /// The same, but holds nothing where another process has the lock.
  static JobLock try_take(const std::string& root, const std::string& job);
  JobLock(JobLock&& other) noexcept;
  JobLock& operator=(JobLock&& other) noexcept;
  ~JobLock();

  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  static JobLock lock(const std::string& path, int operation);

  int descriptor_ = -1;
};

/// Removes the segments, the folder and at last the lock's file of a job whose lock the caller has.
/// What can't be removed stays.
void remove_job(const std::string& root, const std::string& job);

/// Removes what the jobs of a root left whose trainer was killed.
void sweep_dead_jobs(const std::string& root);

}  // namespace weft
