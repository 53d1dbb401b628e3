#pragma once
/// For whom a thread waits that sleeps in a futex, or in a lock of a file.

#include <span>
#include <string>

namespace weft {

struct FutexWait {
  /// The thread that holds the pthread mutex it waits for, of any process; 0: no mutex.
  int mutex_owner = 0;
  bool owner_is_gone = false;  ///< no thread has that number any more
  int joins = 0;               ///< the thread for whose end it waits; 0: none
};

/// A lock of flock(2) or fcntl(2) that another process holds.
struct FileLockWait {
  std::string file{};  ///< empty: it waits for none
  int holder = 0;      ///< pid; 0: can't be seen
  std::string holder_name{};
};

/// `tids`: the threads of the job's processes, of which owner and joined one must be, unless the
/// mutex is shared by processes. Relies on glibc: the owner's tid lies 8 bytes behind the futex
/// word of a mutex, or in the word itself, and pthread_join() waits on the tid. An owner that is
/// gone may be none: the thread's stack has to say whether it waits for a mutex at all.
FutexWait read_futex_wait(int tid, std::span<const int> tids);

/// `pids`: the processes of the job, which are searched for the owner of an open file description's
/// lock, of which the system names no process.
FileLockWait read_file_lock_wait(int pid, int tid, std::span<const int> pids);

}  // namespace weft
