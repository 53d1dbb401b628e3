#pragma once
/// Writes and reads the file with the observed state of a job's processes: processes.json in the
/// record of a hung job.

#include <string>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Returns the file's text.
std::string processes_text(const Snapshot& snapshot);
/// Writes the snapshot's time, processes and sights. Throws io.
void write_processes(const std::string& path, const Snapshot& snapshot);

/// Sets those parts of the snapshot that write_processes() wrote. Throws io, or corrupt, naming the
/// file.
void read_processes(const std::string& path, Snapshot& snapshot);

}  // namespace weft
