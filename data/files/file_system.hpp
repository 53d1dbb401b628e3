#pragma once
/// FileSystem: the operations with which a checkpoint is written completely or not at all. Tests
/// implement this interface to fail at a chosen call, or to simulate a power loss.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weft {

/// The alignment of a write: its offset in the file and its address in memory are multiples of this
/// number, so that it may bypass the page cache (O_DIRECT).
inline constexpr std::size_t kStorageAlignment = 4096;

/// A file that is being written. The destructor closes it but doesn't make it durable. All calls
/// throw io or no_space with the file's path and the system's text. The text of no_space also
/// describes the free space (describe_room()).
class NewFile {
 public:
  virtual ~NewFile() = default;
  /// Writes bytes at an offset. Threads may write at the same time, in any order. `offset` and the
  /// address are multiples of kStorageAlignment, and so is the size, except at the end of the file.
  virtual void write(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  /// Returns once the file's bytes are durable (fsync). After an error the state of the bytes is
  /// unknown, so the file must be written again under another name.
  virtual void sync() = 0;
};

/// An entry of a folder.
struct FolderEntry {
  std::string name{};
  bool is_folder = false;  ///< false for a link to a folder
};

/// All calls throw io or no_space with the path and the system's text. A new or changed name is
/// durable once sync_folder() is called for the folder that contains it.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  /// Creates a file and reserves `bytes` for it. The file must not exist.
  virtual std::unique_ptr<NewFile> create_file(const std::string& path, std::uint64_t bytes) = 0;
  /// Creates a folder unless another worker has already created it.
  virtual void create_folder(const std::string& path) = 0;
  /// Renames a folder. Returns false, without a change, if `to` already exists.
  virtual bool rename(const std::string& from, const std::string& to) = 0;
  virtual void sync_folder(const std::string& path) = 0;
  /// Returns the entries in ascending order of their names.
  virtual std::vector<FolderEntry> list(const std::string& path) const = 0;
  virtual void remove_file(const std::string& path) = 0;
  /// Removes an empty folder.
  virtual void remove_folder(const std::string& path) = 0;
};

/// Describes the free space of the file system of `path`, which need not exist: "the file system
/// /data (ext4) has 4096 of 1048576 bytes free, 65536 are needed". `needed` is in bytes; 0 means
/// unknown.
std::string describe_room(const std::string& path, std::uint64_t needed);

/// Returns the operating system's file system.
FileSystem& posix_file_system();

/// Creates a file with these bytes and makes it durable.
void write_new_file(FileSystem& files, const std::string& path, std::span<const std::byte> bytes);

}  // namespace weft
