#pragma once
/// A job that hung, in its run folder: RUN/hang, with copies of its memory and what was seen of its
/// processes. It tells why the job hung once they are gone.

#include <string>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Replaces what was kept before. The folder appears as a whole. Throws io.
void keep_hang(const Snapshot& job);

/// The job goes on. Throws nothing.
void forget_hang(const std::string& run_dir) noexcept;

}  // namespace weft
