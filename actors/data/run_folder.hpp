#pragma once
/// RunFolder: writes the files in a run's folder, such as progress.csv and result.json.

#include <cstdint>
#include <string>
#include <vector>

#include <weft/job/result.hpp>

namespace weft {

/// Only one thread may use it.
class RunFolder {
 public:
  /// Makes the folder storage_path/name-time-id. Throws io, naming the folder.
  RunFolder(const std::string& storage_path, const std::string& name, const std::string& job_id);
  /// Opens the folder of a dead job. If the trainer was killed while it wrote a row, removes that
  /// incomplete row. Throws io.
  static RunFolder open(const std::string& path) { return RunFolder(path); }
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }

  /// Throws io if the folder has been removed.
  void require() const;

  /// Adds a report to progress.csv. The first 256 keys of reports have columns, in order of
  /// appearance. Throws io, as the other functions do.
  void add(const Metrics& report);
  /// Returns the row that add() writes for a report without new keys.
  std::string row_of(const Metrics& report) const { return csv_row(report); }
  /// Returns the rows of progress.csv, without the names of its columns.
  std::vector<std::string> rows() const;
  /// Removes the last `count` rows of progress.csv.
  void drop_last_rows(std::size_t count) const;
  /// Removes the checkpoint folders of steps before `needed_step`, but keeps the last `max_to_keep`
  /// of all folders. If `max_to_keep` is 0, removes none.
  void keep_checkpoints(int max_to_keep, std::uint64_t needed_step) const;
  /// Writes result.json, which Result::load() reads: the job, its mesh, metrics, metrics_history,
  /// error, and the number of steps that had ended. The file is replaced atomically. If the disk is
  /// full, writes it without metrics_history; space for the rest is reserved in advance.
  void write_result(const Result& result, std::uint64_t step) const;

 private:
  explicit RunFolder(const std::string& path);
  std::string csv_row(const Metrics& metrics) const;

  std::string path_;
  std::vector<std::string> columns_;
};

/// Returns the array of validations that result.json and validation.json contain.
Metrics to_json(const std::vector<Validation>& validations);

/// Copies the files of a worker's `number`-th checkpoint of this step into a folder of the run that
/// all workers share: "checkpoint_000640", or "checkpoint_000640-1". Returns that folder's path.
/// Each file appears atomically, even if the worker is killed.
std::string store_checkpoint(const std::string& run_dir, std::uint64_t step, std::uint32_t number,
                             int worker, const std::string& from);

}  // namespace weft
