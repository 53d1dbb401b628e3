#pragma once
/// FileSystem: what a checkpoint needs of a file system to be written whole or not at all. Tests
/// implement it to fail at a chosen call, or to lose power.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weft {

/// A write begins at a multiple of this in the file and in memory, so that it may bypass the page
/// cache (O_DIRECT).
inline constexpr std::size_t kStorageAlignment = 4096;

/// A file that is being written. Closed, but not made durable, when destroyed. All calls throw io
/// or no_space with the file's path and the system's text; no_space has describe_room(), too.
class NewFile {
 public:
  virtual ~NewFile() = default;
  /// Any thread, in any order. `offset` and the address are multiples of kStorageAlignment; so is
  /// the size, except at the end of the file.
  virtual void write(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  /// Returns once the file's bytes are durable (fsync). After an error nothing is known of them:
  /// the file must be written again, under another name.
  virtual void sync() = 0;
};

/// What a folder has.
struct FolderEntry {
  std::string name{};
  bool is_folder = false;  ///< no link to one
};

/// All calls throw io or no_space with the path and the system's text. Names become durable with
/// sync_folder() of the folder that has them.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  /// Creates a file, which must not exist, with room for `bytes`.
  virtual std::unique_ptr<NewFile> create_file(const std::string& path, std::uint64_t bytes) = 0;
  /// Creates a folder, if no other worker has.
  virtual void create_folder(const std::string& path) = 0;
  /// Renames a folder. False if `to` exists already; then nothing has changed.
  virtual bool rename(const std::string& from, const std::string& to) = 0;
  virtual void sync_folder(const std::string& path) = 0;
  /// By ascending names.
  virtual std::vector<FolderEntry> list(const std::string& path) const = 0;
  virtual void remove_file(const std::string& path) = 0;
  /// Removes an empty folder.
  virtual void remove_folder(const std::string& path) = 0;
};

/// How full a file system is: "the file system /data (ext4) has 4096 of 1048576 bytes free, 65536
/// are needed". `path`: a file or folder of it, which needn't exist; `needed`: bytes, 0: not known.
std::string describe_room(const std::string& path, std::uint64_t needed);

/// The system's.
FileSystem& posix_file_system();

/// Creates a file with these bytes, durably.
void write_new_file(FileSystem& files, const std::string& path, std::span<const std::byte> bytes);

}  // namespace weft
