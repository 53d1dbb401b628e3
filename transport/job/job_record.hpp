#pragma once
/// What is kept of a job in its run folder when its memory is removed, by whoever removes it.
///
///   RUN/summary.json                 of a job that has ended well
///   RUN/blackbox/board.bin           of another, or with all its events (WEFT_TRACE=full): copies
///                                    of its segments as they were
///   RUN/blackbox/box.bin
///   RUN/blackbox/control.bin
///   RUN/blackbox-1/ RUN/blackbox-2/  of the incidents before
///   RUN/.room                        of one whose trainer was killed: see reserve_room()
///   RUN/hang/                        of a job that hung, and hasn't ended well: the same copies,
///                                    from that time

#include <string>
#include <string_view>

namespace weft {

/// The folder of a run's last incident.
std::string incident_in(const std::string& run_dir);
/// The folder of a job that hung; see inspect/snapshot/kept_hang.hpp.
std::string hang_in(const std::string& run_dir);

/// Takes room on the run folder's disk, which free_room() gives back for what is written when the
/// job ends: a disk that fills up meanwhile hides no cause. Does nothing where there is no room.
void reserve_room(const std::string& run_dir) noexcept;
void free_room(const std::string& run_dir) noexcept;

/// Makes the folder anew, with copies of the job's board, black box and control segment. Throws io.
void copy_memory(std::string_view job, const std::string& folder);

/// Copies or sums up what the job has in memory; does nothing where it has no board, or its run
/// folder is gone. Throws nothing: a job is removed whether or not this could be written.
void keep_record(std::string_view job) noexcept;

}  // namespace weft
