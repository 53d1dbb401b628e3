#pragma once
/// A record of a hung job in its run folder: RUN/hang, with copies of the job's memory and the
/// observed state of its processes. It explains the hang after the processes are gone.

#include <string>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Writes the record, which replaces an earlier one. The folder appears as a whole. Throws io.
void keep_hang(const Snapshot& job);

/// Removes the record, because the job continues. Throws nothing.
void forget_hang(const std::string& run_dir) noexcept;

}  // namespace weft
