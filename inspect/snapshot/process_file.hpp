#pragma once
/// ProcessFile: writes and reads processes.json in the record of a hung job, which has the observed
/// state of the job's processes.

#include <string>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Returns the file's text.
std::string processes_text(const Snapshot& snapshot);
/// Writes the fields at_ns, processes and sights. Throws io.
void write_processes(const std::string& path, const Snapshot& snapshot);

/// Sets the parts of the snapshot that write_processes() wrote. Throws io, or corrupt with the
/// file's path.
void read_processes(const std::string& path, Snapshot& snapshot);

}  // namespace weft
