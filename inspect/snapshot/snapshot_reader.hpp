#pragma once
/// SnapshotReader: reads a job repeatedly, from its memory or from its run folder. Only reads, so
/// it never disturbs the job, even if the reader fails.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"
#include "transport/memory/segment.hpp"

namespace weft {

/// Selects the parts of a snapshot. A list of jobs, for example, needs no processes.
struct SnapshotParts {
  bool control = true;  ///< the control segment, and the streams of a live job
  bool processes = true;
  bool events = false;   ///< rings and waits
  bool steps = false;    ///< only the first chip's ring, which has the steps
  bool waits = false;    ///< waits without the rings
  bool metrics = false;  ///< last numbers that the loop reported
};

class SnapshotReader {
 public:
  /// Returns a reader for a job with a board. Throws not_found, version or corrupt.
  static SnapshotReader of_job(const std::string& job);
  /// Returns a reader for a job that has ended. It reads result.json, and the job's memory if the
  /// memory was kept. Throws not_found if the folder has no files of a job; version or corrupt.
  static SnapshotReader of_folder(const std::string& run_dir);

  /// Returns whether the folder has files that of_folder() reads.
  static bool is_run_folder(const std::string& path);

  /// Reads the copies of a job's memory in `folder`, and processes.json there. Throws version,
  /// corrupt or io.
  static Snapshot read_copies(const std::string& folder, const SnapshotParts& parts);
  /// Reads the record of the job's hang, if the folder has one; see keep_hang(). Throws version,
  /// corrupt or io.
  static std::optional<Snapshot> read_hang(const std::string& run_dir);

  /// Reads the job now. Throws corrupt or io.
  Snapshot read(const SnapshotParts& parts = {});

 private:
  SnapshotReader(std::string job, std::optional<Board> board, std::string run_dir)
      : job_(std::move(job)), board_(std::move(board)), run_dir_(std::move(run_dir)) {}
  void open_copies(const std::string& folder);
  void add_board(Snapshot& snapshot) const;
  void add_control(Snapshot& snapshot);
  void add_processes(Snapshot& snapshot) const;
  void add_events(Snapshot& snapshot, const SnapshotParts& parts) const;
  bool is_live() const { return folder_.empty() && board_.has_value(); }

  std::string job_;             ///< "": as in the folder
  std::optional<Board> board_;  ///< absent if the folder has no board
  std::string run_dir_;
  std::string folder_;  ///< folder with copies of the job's memory; "": none, or a live job
  std::shared_ptr<const int> control_;  ///< descriptor of the control segment, once it is open
};

/// Adds sights of these processes to the snapshot of one host: the stacks of their threads, and the
/// holders of the locks for which the threads wait. Skips processes of other hosts.
void add_sights(Snapshot& snapshot, std::span<const HostPid> processes);

/// Returns the jobs that have a board on this machine. Leaves out a host's part of a job if the
/// part of host 0 is here.
std::vector<std::string> whole_jobs();

/// Returns, sorted, the jobs with a board whose id begins with `asked` or whose name is `asked`. An
/// empty text selects all jobs.
std::vector<std::string> find_jobs(const std::string& asked);

}  // namespace weft
