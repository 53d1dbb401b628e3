#pragma once
/// JobStreams: what a job publishes and which rows it gets, read from outside.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// A process that holds a version.
struct VersionHolder {
  int pid = 0;
  std::uint64_t version = 0;  ///< the newest one that it holds
};

/// The versions that a Publisher of the job has made.
struct VersionStream {
  std::string name{};
  std::optional<std::uint64_t> newest{};
  std::uint64_t skipped = 0;
  std::vector<VersionHolder> holders{};

  /// Returns the newest version that the process holds; nothing if it holds none.
  std::optional<std::uint64_t> held_by(int pid) const;
};

/// A process that has opened an ExperienceWriter. It may have ended.
struct RowWriter {
  int pid = 0;
  std::int64_t sent_ns = 0;  ///< CLOCK_MONOTONIC of its last rows; 0: it has sent none
};

/// The rows of an experience().
struct RowStream {
  std::string name{};
  std::uint64_t rows = 0;             ///< rows that have come, in the order of the loaders
  std::uint64_t batch_rows = 0;       ///< rows of a batch; 0: not known before the first step
  std::vector<std::uint64_t> used{};  ///< by worker: the rows that its ended steps have used
  std::uint64_t lag = 0;              ///< lag of the rows that came last, in steps
  std::vector<RowWriter> writers{};

  /// Returns how many of the rows for a worker's step have come: "117 of 512 rows".
  std::string rows_text(int worker) const;
};

struct JobStreams {
  std::int64_t at_ns = 0;  ///< CLOCK_MONOTONIC
  std::vector<VersionStream> versions{};
  std::vector<RowStream> rows{};
  std::vector<std::string> unreadable{};  ///< why others can't be read

  /// Returns the rows that a loader waits for if the board says that it reads an item of the
  /// dataset `inside`; null if the dataset isn't an experience, or can't be read.
  const RowStream* rows_of(std::string_view inside) const;
};

/// Reads the streams of a job of this host. Copies bytes, and maps nothing.
JobStreams read_job_streams(const std::string& job);

}  // namespace weft
