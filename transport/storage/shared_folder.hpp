#pragma once
/// FolderMark: an empty file by which the hosts of a job find out whether they share a folder. Host
/// 0 leaves it in its folder, and each other host looks for it in its own.
///
///   FOLDER/.hosts-JOB

#include <chrono>
#include <functional>
#include <string>

namespace weft {

/// The file is removed when the object is destroyed.
class FolderMark {
 public:
  /// Makes the folder and the file, and removes the marks of other jobs, which have been killed: no
  /// other job may use the folder. Throws io.
  FolderMark(const std::string& folder, const std::string& job);
  ~FolderMark();
  FolderMark(const FolderMark&) = delete;
  FolderMark& operator=(const FolderMark&) = delete;

 private:
  const std::string path_;
};

/// The time for which find_mark() looks in a folder of a network file system.
inline constexpr std::chrono::seconds kMarkPatience{3};

/// Returns whether the folder, which it makes, has the job's mark. A network file system may show a
/// new file of another machine late, so the search in it is repeated for kMarkPatience, and each
/// time a file is made and removed, after which such a file system lists the folder anew. A file
/// system of this machine's disks or memory is searched once. `wait` is called between two
/// searches. Throws io.
bool find_mark(const std::string& folder, const std::string& job,
               const std::function<void()>& wait);

}  // namespace weft
