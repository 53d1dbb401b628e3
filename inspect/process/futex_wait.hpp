#pragma once
/// For whom a thread waits that sleeps in a futex.

#include <span>

namespace weft {

struct FutexWait {
  int mutex_owner = 0;  ///< the thread that holds the pthread mutex it waits for; 0: no mutex
  int joins = 0;        ///< the thread for whose end it waits; 0: none
};

/// `tids`: the threads of its process, of which owner and joined one must be. Relies on glibc: the
/// owner's tid lies 8 bytes behind the futex word of a mutex, and pthread_join() waits on the tid.
FutexWait read_futex_wait(int tid, std::span<const int> tids);

}  // namespace weft
