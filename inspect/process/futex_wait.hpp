#pragma once
/// FutexWait: finds the holder of the mutex or of the file lock for which a thread waits.

#include <span>
#include <string>

namespace weft {

struct FutexWait {
  /// The thread, of any process, that holds the pthread mutex for which this thread waits; 0: no
  /// thread.
  int mutex_owner = 0;
  bool owner_is_gone = false;  ///< whether no thread has the owner's number any more
  int joins = 0;  ///< the thread whose end this thread awaits in pthread_join(); 0: no thread
};

/// A wait for a lock of flock(2) or fcntl(2) that another process holds.
struct FileLockWait {
  std::string file{};  ///< "": the thread waits for no lock of a file
  int holder = 0;      ///< pid of the holder; 0 if the holder can't be seen
  std::string holder_name{};
};

/// Returns what a thread waits for in a futex. `tids` are the threads of the job's processes. The
/// owner and the joined thread must be among them, unless the mutex is shared by processes. Relies
/// on glibc: a mutex has its owner's tid 8 bytes after its futex word, or in the word itself, and
/// pthread_join() waits on the joined thread's tid. If the owner seems to be gone, the word may not
/// belong to a mutex at all, so the caller must check by the thread's stack that the thread waits
/// for a mutex.
FutexWait read_futex_wait(int tid, std::span<const int> tids);

/// Returns the file lock for which a thread waits. `pids` are the processes of the job. They are
/// searched for the owner of an open file description's lock, for which the system names no
/// process.
FileLockWait read_file_lock_wait(int pid, int tid, std::span<const int> pids);

}  // namespace weft
