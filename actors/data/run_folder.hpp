#pragma once
/// The folder of a run: progress.csv, result.json, checkpoints, logs.

#include <cstdint>
#include <string>
#include <vector>

#include <weft/result.hpp>

namespace weft {

/// Used by one thread.
class RunFolder {
 public:
  /// Makes storage_path/name-time-id. Throws io, naming the folder.
  RunFolder(const std::string& storage_path, const std::string& name, const std::string& job_id);
  /// That of a dead job. The part of a row that its trainer was killed in is removed. Throws io.
  static RunFolder open(const std::string& path) { return RunFolder(path); }
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }

  /// Throws io if something has removed it.
  void require() const;

  /// Adds a report to progress.csv: a column for each of the first 256 keys of any report so far,
  /// in order of appearance. Throws io, as the others do.
  void add(const Metrics& report);
  /// The row that add() writes for a report that has no new key.
  std::string row_of(const Metrics& report) const { return csv_row(report); }
  /// The last row of progress.csv; "" if it has none.
  std::string last_row() const;
  /// Removes the oldest checkpoint folders but `max_to_keep` (0: keeps all), of those of steps
  /// before `needed_step`.
  void keep_checkpoints(int max_to_keep, std::uint64_t needed_step) const;
  /// result.json, which Result::load() reads: the job, its mesh, metrics, metrics_history, error,
  /// and the number of steps that had ended. Replaces it in one step. On a full disk there is still
  /// room for all but the history, which is left out then.
  void write_result(const Result& result, std::uint64_t step) const;

 private:
  explicit RunFolder(const std::string& path);
  std::string csv_row(const Metrics& metrics) const;

  std::string path_;
  std::vector<std::string> columns_;
};

/// The array that result.json and validation.json have.
Metrics to_json(const std::vector<Validation>& validations);

/// Copies the files of a worker's checkpoint, its `number`-th of this step, into the folder of a
/// run that is for all workers': "checkpoint_000640", or "checkpoint_000640-1"; returns its path. A
/// file is there whole or not at all, whenever the worker is killed.
std::string store_checkpoint(const std::string& run_dir, std::uint64_t step, std::uint32_t number,
                             int worker, const std::string& from);

}  // namespace weft
