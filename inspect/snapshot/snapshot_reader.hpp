#pragma once
/// SnapshotReader: reads a job again and again, from its memory or from its run folder. It only
/// reads: a job isn't disturbed, whatever becomes of the reader.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"
#include "transport/memory/segment.hpp"

namespace weft {

/// What belongs to a snapshot. A list of jobs needs no processes.
struct SnapshotParts {
  bool control = true;
  bool processes = true;
  bool events = false;   ///< rings, and who waited for whom
  bool steps = false;    ///< of rings only that of the first chip, which has the steps
  bool waits = false;    ///< who waited for whom, without the rings
  bool metrics = false;  ///< that the loop has reported last
};

class SnapshotReader {
 public:
  /// Of a job that has a board. Throws not_found, version or corrupt.
  static SnapshotReader of_job(const std::string& job);
  /// Of a job that has ended, from its result.json and from its memory, where that was kept.
  /// Throws not_found where the folder has nothing of a job, version or corrupt.
  static SnapshotReader of_folder(const std::string& run_dir);

  /// The folder has what of_folder() reads.
  static bool is_run_folder(const std::string& path);

  /// The job of a run folder as it was when it hung, if that was kept; see keep_hang().
  /// Throws version, corrupt or io.
  static std::optional<Snapshot> read_hang(const std::string& run_dir);

  /// Throws corrupt or io.
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

  std::string job_;             ///< empty: as the folder says
  std::optional<Board> board_;  ///< absent: the folder has none
  std::string run_dir_;
  std::string folder_;                  ///< of copies of the job's memory; empty: none, or it lives
  std::shared_ptr<const int> control_;  ///< a descriptor, once it has been found
};

/// Looks closely at the threads of these processes: where they are, and for whom they wait.
void add_sights(Snapshot& snapshot, std::span<const int> pids);

/// The jobs that have a board whose id begins with, or whose name is `asked`; sorted. Empty text:
/// all.
std::vector<std::string> find_jobs(const std::string& asked);

}  // namespace weft
