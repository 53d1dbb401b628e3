#pragma once
/// OutputFile: a file for other programs. It gets its final name only when all its bytes are
/// durable. Until then its name is PATH.weft-XXXXXX.tmp, and its writer keeps it locked. The kernel
/// drops the lock when the process ends, so such a file without a lock is from a killed writer. An
/// object of a store is written to a local file first, and finish() puts it in the store.

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace weft {

/// All calls throw io or no_space with the path.
class OutputFile {
 public:
  /// Creates a file in the folder of `path` under another name, and removes files that killed
  /// writers left in this folder. Throws unavailable for a URL that has no storage.
  explicit OutputFile(std::string path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  /// Removes the file if it isn't finished.
  ~OutputFile();

  void write(std::span<const std::byte> bytes);
  /// Returns the descriptor, for writers that don't use write().
  int descriptor() const { return ::fileno(file_); }
  /// Gives the file its final name, or puts the object in the store. Replaces an existing file or
  /// object.
  void finish();

 private:
  [[noreturn]] void fail_call(const char* what) const;

  const std::string path_;
  const std::string folder_;  // local folder in which the file is written
  std::string unfinished_;
  std::FILE* file_;
};

/// Removes the unfinished files of a folder whose writers are dead, unless `dry_run`, and returns
/// their paths, sorted. On a file system without locks no writer is known to be dead. Throws io if
/// the folder can't be listed.
std::vector<std::string> sweep_unfinished(const std::string& folder, bool dry_run = false);

}  // namespace weft
