#pragma once
/// KeptHang: writes the record of a hung job: RUN/hang in its run folder, and RUN/host-1/hang for
/// its part on host 1. The record has copies of the memory and the observed state of the processes
/// of one host. It explains the hang after the processes are gone.

#include <string>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Writes the record, which replaces an earlier record. The folder appears only when it is
/// complete. Throws io.
void keep_hang(const Snapshot& job);

/// Removes the record, because the job continues. Throws nothing.
void forget_hang(const std::string& run_dir, int host = 0) noexcept;

}  // namespace weft
