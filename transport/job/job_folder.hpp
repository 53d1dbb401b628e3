#pragma once
/// The files of jobs other than memory: a control root of this user, and in it for each job a
/// folder and a lock that its trainer holds for its lifetime.
///
///   root/<job>/          mode 0700: the control socket, the run card, and what goes with them
///   root/<job>.lock      an OFD lock; the kernel drops it with the process, however that ends

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "transport/memory/parent_only.hpp"

namespace weft {

/// An id is 128 random bits in hex.
inline constexpr std::size_t kJobIdLength = 32;
bool is_job_id(std::string_view text) noexcept;

/// Makes $XDG_RUNTIME_DIR/weft, or /tmp/weft-<uid> if that can't be made (in a login without a
/// session the variable is set but the folder is missing) or its path is too long for a socket.
/// Throws io.
std::string make_control_root();

/// The existing roots that belong to this user alone and that any process of the user may have
/// chosen: also /run/user/<uid>/weft, whatever XDG_RUNTIME_DIR is here.
std::vector<std::string> control_roots();

/// Whether the folder is there and belongs to this user alone.
bool is_control_root(const std::string& path);

/// Jobs with a lock or a folder in the root.
std::vector<std::string> jobs_in(const std::string& root);

/// Makes `path` if it doesn't exist. Throws io if others can enter or own it.
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
  JobLock() = default;  ///< holds nothing
  /// Creates the file and waits for the lock. Throws io.
  static JobLock take(const std::string& root, const std::string& job);
  /// The same without waiting: holds nothing if another process has the lock.
  static JobLock try_take(const std::string& root, const std::string& job);
  /// Whether a process has the lock. Takes nothing, so that those who ask don't disturb each other,
  /// nor a rescue. Throws io.
  static bool is_held(const std::string& root, const std::string& job);
  JobLock(JobLock&& other) noexcept;
  JobLock& operator=(JobLock&& other) noexcept;
  ~JobLock();

  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  /// Holds nothing where there is no such file, and none is to be created. Throws io.
  static JobLock open(const std::string& path, int flags);
  static JobLock lock(const std::string& path, int command);

  int descriptor_ = -1;
  ParentOnly own_;
};

/// The file with the job's run card (format/run_card.hpp). A job whose state can't be rescued has
/// none.
inline std::string run_card_in(const std::string& root, const std::string& job) {
  return folder_in(root, job) + "/run-card.weft";
}

/// Seconds for which the memory of a dead job is still to be kept, as its run card says: its
/// keep_for_rescue_s, counted from the first of these calls. 0: no longer.
double kept_for_s(const std::string& root, const std::string& job);

/// Removes the segments, the folder and at last the lock file of a job whose lock the caller holds;
/// before that, keeps what job_record.hpp says.
/// Files that can't be removed stay.
void remove_job(const std::string& root, const std::string& job);

/// Removes what jobs with a killed trainer have left in a root, unless it is kept for a rescue.
void sweep_dead_jobs(const std::string& root);

}  // namespace weft
