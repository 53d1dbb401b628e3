#pragma once
/// JobRecord: writes the files of a job that remain in its run folder when a process removes the
/// job's memory.
///
///   RUN/summary.json                 of a job that has ended well
///   RUN/blackbox/board.bin           of any other job, and of a job that records all its events
///                                    (WEFT_TRACE=full): copies of the job's segments
///   RUN/blackbox/box.bin
///   RUN/blackbox/control.bin
///   RUN/blackbox-1/ RUN/blackbox-2/  copies from earlier incidents
///   RUN/.room                        of a job whose trainer was killed: see reserve_room()
///   RUN/hang/                        of a job that hung and hasn't ended well: the same copies,
///                                    taken when it hung
///   RUN/host-1/...                   the same files for a job's part on host 1

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "transport/memory/segment.hpp"

namespace weft {

/// Returns the folder for the files of a job's part on host `host`; for host 0 it is `run_dir`.
std::string record_folder(const std::string& run_dir, int host);
/// Returns the folder with the copies from a run's last incident.
std::string incident_in(const std::string& run_dir);
/// Returns the folder with the copies from a job that hung; see inspect/snapshot/kept_hang.hpp.
std::string hang_in(const std::string& run_dir);

/// reserve_room() reserves disk space in the run folder, as far as the disk has any left. At the
/// job's end, free_room() frees this space for the files that are written then. So the cause of the
/// end can be written even if the disk has become full.
void reserve_room(const std::string& run_dir) noexcept;
void free_room(const std::string& run_dir) noexcept;

/// Copies the job's board, black box and control segment to a new folder, which replaces an old
/// one. Throws io.
void copy_memory(std::string_view job, const std::string& folder);

/// A part of a segment that isn't a hole. Holes read as zeros.
struct MemoryPiece {
  std::size_t offset = 0;
  std::string bytes;
};
/// Returns the parts of the segment that aren't holes, in order.
std::vector<MemoryPiece> pieces_of(const Segment& segment);

/// Copies the job's memory to the run folder, or writes a summary of the job. Does nothing if the
/// job has no board or its run folder is gone. Throws nothing, because the job is removed even if
/// this fails.
void keep_record(std::string_view job) noexcept;

}  // namespace weft
