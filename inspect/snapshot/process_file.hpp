#pragma once
/// What was seen of the processes of a job, in a file: processes.json of a job that hung.

#include <string>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// The time of the snapshot, its processes and its sights. Throws io.
void write_processes(const std::string& path, const Snapshot& snapshot);

/// Sets what write_processes() wrote. Throws io, or corrupt, naming the file.
void read_processes(const std::string& path, Snapshot& snapshot);

}  // namespace weft
