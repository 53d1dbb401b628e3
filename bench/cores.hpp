#pragma once
/// Returns the cores on which a benchmark may run, and binds a thread to one of them.

#include <sched.h>

namespace weft::bench {

inline cpu_set_t allowed_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) CPU_SET(0, &cores);
  return cores;
}

/// Binds the calling thread to the n-th of `cores`, counted from 0. Does nothing if there are fewer
/// cores.
inline void bind_to_core(const cpu_set_t& cores, int n) {
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &cores) || n-- != 0) continue;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(core, &own);
    sched_setaffinity(0, sizeof(own), &own);
    return;
  }
}

}  // namespace weft::bench
