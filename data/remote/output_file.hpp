#pragma once
/// OutputFile: a file for other programs, which gets its name once all of it is durable. Until then
/// it is PATH.weft-XXXXXX.tmp, which its writer holds locked: the kernel drops the lock with the
/// process, so that such a file without a lock is known to be left by a killed one. An object of a
/// store is written to a file of this machine, and put at the end.

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace weft {

/// All calls throw io or no_space with the path.
class OutputFile {
 public:
  /// Creates a file beside `path`, under another name, and removes what killed writers have left in
  /// that folder. Throws unavailable for a URL that has no storage.
  explicit OutputFile(std::string path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  /// Removes what was not finished.
  ~OutputFile();

  void write(std::span<const std::byte> bytes);
  /// For writers of another kind, instead of write().
  int descriptor() const { return ::fileno(file_); }
  /// Gives the file its name, or puts the object; it replaces one that has it.
  void finish();

 private:
  [[noreturn]] void fail_call(const char* what) const;

  const std::string path_;
  const std::string folder_;  // of this machine, in which it is written
  std::string unfinished_;
  std::FILE* file_;
};

/// The unfinished files of a folder whose writers are dead, by name; removed unless `dry_run`.
/// Where locks can't be asked for, nobody is known to be dead. Throws io if the folder can't be
/// listed.
std::vector<std::string> sweep_unfinished(const std::string& folder, bool dry_run = false);

}  // namespace weft
