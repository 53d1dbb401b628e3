#pragma once
/// Finds the holder for which a thread waits in a futex, or in a lock of a file.

#include <span>
#include <string>

namespace weft {

struct FutexWait {
  /// The thread, of any process, that holds the pthread mutex; 0 if it waits for no mutex.
  int mutex_owner = 0;
  bool owner_is_gone = false;  ///< no thread has that number any more
  int joins = 0;               ///< the thread that it joins; 0: none
};

/// A wait for a lock of flock(2) or fcntl(2) that another process holds.
struct FileLockWait {
  std::string file{};  ///< empty if it waits for none
  int holder = 0;      ///< pid; 0 if it can't be seen
  std::string holder_name{};
};

/// `tids` are the threads of the job's processes. The owner and the joined thread must be among
/// them, unless the mutex is shared by processes. Relies on glibc: a mutex has the owner's tid 8
/// bytes after its futex word, or in the word itself, and pthread_join() waits on the tid. If the
/// owner seems to be gone, the word may not belong to a mutex: the thread's stack must confirm that
/// it waits for one.
FutexWait read_futex_wait(int tid, std::span<const int> tids);

/// `pids` are the processes of the job. They are searched for the owner of an open file
/// description's lock, because the system names no process for it.
FileLockWait read_file_lock_wait(int pid, int tid, std::span<const int> pids);

}  // namespace weft
