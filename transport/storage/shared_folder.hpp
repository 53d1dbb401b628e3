#pragma once
/// FolderMark: an empty file by which the hosts of a job find out whether they share a folder. Host
/// 0 makes the file in its folder, and each other host searches its own folder for the file.
///
///   FOLDER/.hosts-JOB

#include <chrono>
#include <functional>
#include <string>

namespace weft {

/// Makes the job's mark. Removes it when the object is destroyed.
class FolderMark {
 public:
  /// Makes the folder and the mark. Removes marks that killed jobs have left, since no other job
  /// may use the folder. Throws io.
  FolderMark(const std::string& folder, const std::string& job);
  ~FolderMark();
  FolderMark(const FolderMark&) = delete;
  FolderMark& operator=(const FolderMark&) = delete;

 private:
  const std::string path_;
};

/// The time for which find_mark() searches a folder of a network file system.
inline constexpr std::chrono::seconds kMarkPatience{3};

/// Makes the folder if needed, and returns whether it has the job's mark. A folder of this
/// machine's disks or memory is searched once. A network file system may show another machine's new
/// file late, so the search is repeated for kMarkPatience. Each time a file is made and removed
/// first, after which such a file system lists the folder again. `wait` is called between two
/// searches. Throws io.
bool find_mark(const std::string& folder, const std::string& job,
               const std::function<void()>& wait);

}  // namespace weft
