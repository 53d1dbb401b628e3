#pragma once
/// Finds the holder of the mutex or of the file lock for which a thread waits.

#include <span>
#include <string>

namespace weft {

struct FutexWait {
  /// The thread, of any process, that holds the pthread mutex for which this thread waits; 0: none.
  int mutex_owner = 0;
  bool owner_is_gone = false;  ///< no thread has the owner's number any more
  int joins = 0;               ///< the thread that this thread joins; 0: none
};

/// A wait for a lock of flock(2) or fcntl(2) that another process holds.
struct FileLockWait {
  std::string file{};  ///< "": the thread waits for no lock of a file
  int holder = 0;      ///< pid of the holder; 0 if it can't be seen
  std::string holder_name{};
};

/// Returns the wait of a thread in a futex. `tids` are the threads of the job's processes. The
/// owner and the joined thread must be among them, unless the mutex is shared by processes. Relies
/// on glibc: a mutex has the owner's tid 8 bytes after its futex word, or in the word itself, and
/// pthread_join() waits on the joined thread's tid. If the owner seems to be gone, the word may not
/// belong to a mutex, so the thread's stack must confirm that the thread waits for one.
FutexWait read_futex_wait(int tid, std::span<const int> tids);

/// Returns the wait of a thread for a file's lock. `pids` are the processes of the job. They are
/// searched for the owner of an open file description's lock, because the system names no process
/// for it.
FileLockWait read_file_lock_wait(int pid, int tid, std::span<const int> pids);

}  // namespace weft
