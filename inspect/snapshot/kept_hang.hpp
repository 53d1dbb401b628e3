#pragma once
/// Writes the record of a hung job, RUN/hang in its run folder. The record has copies of the job's
/// memory and the observed state of its processes. It explains the hang after the processes are
/// gone.

#include <string>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Writes the record, which replaces an earlier one. The folder appears only when it is complete.
/// Throws io.
void keep_hang(const Snapshot& job);

/// Removes the record, because the job continues. Throws nothing.
void forget_hang(const std::string& run_dir) noexcept;

}  // namespace weft
