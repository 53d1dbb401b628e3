#pragma once
/// The files of jobs, except their memory. A user has a control root. In it, each job has a folder,
/// and a lock that its trainer holds for its lifetime.
///
///   root/<job>/          mode 0700: the control socket, the run card, and related files
///   root/<job>.lock      an OFD lock; the kernel releases it with the process, however that ends

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "transport/memory/parent_only.hpp"

namespace weft {

/// An id is 128 random bits in hex.
inline constexpr std::size_t kJobIdLength = 32;
bool is_job_id(std::string_view text) noexcept;

/// Makes $XDG_RUNTIME_DIR/weft and returns its path. If that folder can't be made, or its path is
/// too long for a socket, makes /tmp/weft-<uid> instead. (In a login without a session, the
/// variable is set but the folder is missing.) Throws io.
std::string make_control_root();

/// Returns the existing roots that belong only to this user and that any process of the user may
/// have chosen. They include /run/user/<uid>/weft, whatever XDG_RUNTIME_DIR is in this process.
std::vector<std::string> control_roots();

/// Returns whether the folder exists and belongs only to this user.
bool is_control_root(const std::string& path);

/// Returns the jobs that have a lock or a folder in the root.
std::vector<std::string> jobs_in(const std::string& root);

/// Makes `path` if it doesn't exist. Throws io if other users can enter or own it.
void make_private_folder(const std::string& path);

inline std::string folder_in(const std::string& root, const std::string& job) {
  return root + "/" + job;
}
inline std::string lock_in(const std::string& root, const std::string& job) {
  return root + "/" + job + ".lock";
}

/// Owner of a job's lock, which forked children don't hold.
class JobLock {
 public:
  JobLock() = default;  ///< makes an owner that holds nothing
  /// Creates the file and waits for the lock. Throws io.
  static JobLock take(const std::string& root, const std::string& job);
  /// Does the same without waiting. Holds nothing if another process has the lock.
  static JobLock try_take(const std::string& root, const std::string& job);
  /// Returns whether a process has the lock. It takes nothing, so that callers disturb neither each
  /// other nor a rescue. Throws io.
  static bool is_held(const std::string& root, const std::string& job);
  JobLock(JobLock&& other) noexcept;
  JobLock& operator=(JobLock&& other) noexcept;
  ~JobLock();

  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  /// Holds nothing if the file doesn't exist and `flags` don't create it. Throws io.
  static JobLock open(const std::string& path, int flags);
  static JobLock lock(const std::string& path, int command);

  int descriptor_ = -1;
  ParentOnly own_;
};

/// The file with the job's run card (format/run_card.hpp). It doesn't exist for a job whose state
/// can't be rescued.
inline std::string run_card_in(const std::string& root, const std::string& job) {
  return folder_in(root, job) + "/run-card.weft";
}

/// Returns for how many more seconds the memory of a dead job must be kept. The run card says how
/// long (keep_for_rescue_s), counted from the first of these calls. 0 means that it needn't be kept
/// any longer.
double kept_for_s(const std::string& root, const std::string& job);

/// Removes the segments, the folder and finally the lock file of a job whose lock the caller holds.
/// Before that it keeps the files that job_record.hpp lists. Files that can't be removed stay.
void remove_job(const std::string& root, const std::string& job);

/// Removes the files that jobs with a killed trainer have left in a root, except those that are
/// kept for a rescue.
void sweep_dead_jobs(const std::string& root);

}  // namespace weft
