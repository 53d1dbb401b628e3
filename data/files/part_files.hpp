#pragma once
/// PartFiles: reads the files that contain tensors. Any thread may use it.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace weft {

/// A file is opened at its first use, or by open(). It stays open, so that reading still works
/// after the file was replaced or removed. At most kOpenFilesMax files stay open; any further file
/// is opened for each use. All calls throw not_found, io, or, if a file is too short, corrupt.
class PartFiles {
 public:
  static constexpr std::size_t kOpenFilesMax = 256;

  PartFiles(const std::string& folder, const std::vector<std::string>& names);
  explicit PartFiles(const std::vector<std::string>& paths);
  PartFiles(const PartFiles&) = delete;
  PartFiles& operator=(const PartFiles&) = delete;
  ~PartFiles();

  /// Opens as many files as may stay open. A file that can't be opened fails at its first use.
  void open() const;
  const std::string& path(std::uint32_t file) const { return files_[file].path; }
  std::uint64_t bytes(std::uint32_t file) const;
  /// Throws corrupt if the file is too short to contain these bytes.
  void require(std::uint32_t file, std::uint64_t offset, std::uint64_t bytes) const;
  void read(std::uint32_t file, std::uint64_t offset, std::span<std::byte> out) const;

 private:
  struct File {
    std::string path{};
    int descriptor = -1;  // -1 if the file isn't open
  };
  /// Calls `use` with an open descriptor of the file.
  template <typename Use>
  void with(std::uint32_t file, Use use) const;

  mutable std::vector<File> files_;
  mutable std::size_t open_ = 0;
  mutable std::mutex mutex_;
};

}  // namespace weft
