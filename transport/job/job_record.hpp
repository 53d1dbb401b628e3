#pragma once
/// The files of a job that are kept in its run folder when its memory is removed, whichever process
/// removes it.
///
///   RUN/summary.json                 of a job that has ended well
///   RUN/blackbox/board.bin           of any other job, or with all its events (WEFT_TRACE=full):
///                                    copies of its segments
///   RUN/blackbox/box.bin
///   RUN/blackbox/control.bin
///   RUN/blackbox-1/ RUN/blackbox-2/  of earlier incidents
///   RUN/.room                        of a job whose trainer was killed: see reserve_room()
///   RUN/hang/                        of a job that hung and hasn't ended well: the same copies,
///                                    taken when it hung

#include <string>
#include <string_view>

namespace weft {

/// The folder of a run's last incident.
std::string incident_in(const std::string& run_dir);
/// The folder of a job that hung; see inspect/snapshot/kept_hang.hpp.
std::string hang_in(const std::string& run_dir);

/// Reserves room on the run folder's disk. When the job ends, free_room() frees it for the files
/// that are then written, so that a disk that fills up meanwhile doesn't hide the job's cause. Does
/// nothing if there is no room.
void reserve_room(const std::string& run_dir) noexcept;
void free_room(const std::string& run_dir) noexcept;

/// Makes a new folder with copies of the job's board, black box and control segment, in place of an
/// old one. Throws io.
void copy_memory(std::string_view job, const std::string& folder);

/// Copies or summarizes the job's memory. Does nothing if the job has no board or its run folder is
/// gone. Throws nothing, because a job is removed even if this could not be written.
void keep_record(std::string_view job) noexcept;

}  // namespace weft
