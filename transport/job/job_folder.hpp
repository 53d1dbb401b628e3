#pragma once
/// The files of jobs, except their memory. Each user has a control root. In it, each job has a
/// folder, and a file that the job's trainer keeps locked.
///
///   root/<job>/          mode 0700: the control socket, the run card, and related files
///   root/<job>.lock      an OFD lock; the kernel releases it when the process ends in any way

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "transport/memory/parent_only.hpp"

namespace weft {

/// The number of hex digits in a job's id, which is 128 random bits.
inline constexpr std::size_t kJobIdLength = 32;
bool is_job_id(std::string_view text) noexcept;

/// Makes $XDG_RUNTIME_DIR/weft and returns its path. If this folder can't be made, or its path is
/// too long for a socket, makes /tmp/weft-<uid> instead. (In a login without a session, the
/// variable is set but its folder doesn't exist.) Throws io.
std::string make_control_root();

/// Returns the control roots that a process of this user may have chosen, if they exist and belong
/// only to this user. They include /run/user/<uid>/weft, whatever XDG_RUNTIME_DIR is in this
/// process.
std::vector<std::string> control_roots();

/// Returns whether the folder exists and no other user can access it.
bool is_control_root(const std::string& path);

/// Returns the jobs that have a lock or a folder in the root.
std::vector<std::string> jobs_in(const std::string& root);

/// Makes the folder `path` if it doesn't exist. Throws io if other users can enter or own it.
void make_private_folder(const std::string& path);

inline std::string folder_in(const std::string& root, const std::string& job) {
  return root + "/" + job;
}
inline std::string lock_in(const std::string& root, const std::string& job) {
  return root + "/" + job + ".lock";
}

/// Owns a job's lock. Forked children don't have the lock.
class JobLock {
 public:
  JobLock() = default;  ///< makes an owner that holds nothing
  /// Creates the lock file and waits for the lock. Throws io.
  static JobLock take(const std::string& root, const std::string& job);
  /// Like take(), but doesn't wait. The result holds nothing if another process has the lock.
  static JobLock try_take(const std::string& root, const std::string& job);
  /// Returns whether a process has the lock. Doesn't take the lock, so it disturbs neither a rescue
  /// nor other callers. Throws io.
  static bool is_held(const std::string& root, const std::string& job);
  JobLock(JobLock&& other) noexcept;
  JobLock& operator=(JobLock&& other) noexcept;
  ~JobLock();

  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  /// Opens the lock file. The result holds nothing if the file doesn't exist and `flags` don't
  /// create it. Throws io.
  static JobLock open(const std::string& path, int flags);
  static JobLock lock(const std::string& path, int command);

  int descriptor_ = -1;
  ParentOnly own_;
};

/// Returns the path of the job's run card (format/run_card.hpp). If the job's state can't be
/// rescued, the file doesn't exist.
inline std::string run_card_in(const std::string& root, const std::string& job) {
  return folder_in(root, job) + "/run-card.weft";
}

/// Returns for how many more seconds the memory of a dead job must be kept; 0 if it may be removed.
/// The time runs from the first call of this function for the job, and lasts as long as
/// keep_for_rescue_s of the run card says.
double kept_for_s(const std::string& root, const std::string& job);

/// Removes the segments, the folder and finally the lock file of a job whose lock the caller has.
/// Before that, saves the files that job_record.hpp lists. Files that can't be removed remain.
void remove_job(const std::string& root, const std::string& job);

/// Removes the files of jobs in `root` whose trainer was killed, except those that are kept for a
/// rescue.
void sweep_dead_jobs(const std::string& root);

}  // namespace weft
